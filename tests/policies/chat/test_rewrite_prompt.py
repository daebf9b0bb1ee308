"""How a chat model is asked, and where its reply ends."""

import pytest

from policies.baselines.prompted import PromptedPolicy
from policies.chat.rewrite_prompt import clean_reply
from rewriting import Exchange


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ('I hear you. Rest."\n\nThis is warmer.', "I hear you. Rest."),
        ("I hear you.\nNote: warm.", "I hear you."),
        ("I hear you. You can alw", "I hear you."),
        ("I hear you and you can alw", ""),
        ("Dear friend,\n\nI hear you.", ""),
        ('"', ""),
        ("", ""),
    ],
)
def test_a_reply_ends_with_its_quotation(text: str, reply: str) -> None:
    assert clean_reply(text) == reply


@pytest.mark.integration
def test_a_long_post_keeps_the_instruction_and_its_own_end() -> None:
    policy = PromptedPolicy(max_prompt_tokens=200)
    text = policy.prompt.text(Exchange("word " * 900 + "the end", "Well. " * 400))
    assert "You help people on a peer support site" in text
    assert "the end" in text
    assert text.endswith('Here is the warmer answer: "')
    assert len(policy.prompt.tokens(text)) <= 210  # seams between cut texts may add a token or two
