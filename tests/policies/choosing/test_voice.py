"""Lent sentences are typed as the reply is."""

import pytest

from policies.choosing.voice import in_voice


@pytest.mark.parametrize(
    ("sentence", "reply", "typed"),
    [
        ("waiting like that is torture", "Stay calm. It helps.", "Waiting like that is torture."),
        ("i'm sad i missed it, i am!", "Oh no.", "I'm sad I missed it, I am!"),
        ("What was it like?", "Oh no.", "What was it like?"),
        ("That is hard.", "just go out more. you'll see", "that is hard."),
        ("I'm with you.", "go out", "I'm with you."),
        ("I see it.", "go out", "I see it."),
        ("It's hard.", "go out", "it's hard."),
        ("that is hard", "", "that is hard"),
        ("that is hard", "10/10 :)", "that is hard"),
        ("", "Oh no.", ""),
    ],
)
def test_voice(sentence: str, reply: str, typed: str) -> None:
    assert in_voice(sentence, reply) == typed
    assert in_voice(typed, reply) == typed
