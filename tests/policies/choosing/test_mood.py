"""What the reply says of the post decides between glad sentences and others."""

from pathlib import Path

import pytest

from policies.choosing.mood import suits
from rewriting import Exchange
from rewriting.loop import EditState
from tests.policies.choosing.tiny import tiny_agent

GUTTED, THRILLED = "I'm gutted for you.", "I'm thrilled for you, and so proud."


@pytest.mark.parametrize(
    ("reply", "gutted", "thrilled"),
    [
        ("Congrats. Be careful though.", False, True),
        ("Well done, but don't get complacent.", False, True),
        ("I'm so happy for you!", False, True),
        ("Sorry to hear that. Try again.", True, False),
        ("That's rough.", True, False),
        ("Try again next month.", True, True),
        ("So sorry about your dad. Congratulations on the job all the same.", True, True),
    ],
)
def test_moods(reply: str, gutted: bool, thrilled: bool) -> None:
    assert suits(GUTTED, reply) is gutted
    assert suits(THRILLED, reply) is thrilled


def test_the_choices_suit_the_reply(tmp_path: Path) -> None:
    agent = tiny_agent(tmp_path, choices=4)
    agent.bank.sentences[0] = THRILLED
    said = {}
    for reply in ("Go on.", "Congrats.", "So sorry for you."):
        state = EditState(Exchange("I failed it.", reply), (reply,))
        said[reply] = {agent.bank.sentences[one.number] for one in agent.choices(state)}
    assert THRILLED in said["Go on."]
    assert said["Congrats."] == {THRILLED}
    assert said["So sorry for you."] == said["Go on."] - {THRILLED}
