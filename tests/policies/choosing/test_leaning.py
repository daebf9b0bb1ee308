"""What another sentence leans on is not replaced."""

from pathlib import Path

import pytest
import torch

from policies.choosing.leaning import leans, leant_on
from rewriting import Exchange
from rewriting.loop import EditState
from tests.policies.choosing.tiny import tiny_agent


@pytest.mark.parametrize(
    "text",
    ["Lots of people don't.", "He was a golden.", "It's only a dog.", "Took me a year, haha",
     "That’s 180 a year.", "So what?", "they always come back"],
)  # fmt: skip
def test_leaning(text: str) -> None:
    assert leans(text)


@pytest.mark.parametrize(
    "text",
    ["Make a plan for every day.", "Don't worry.", "Have you tried it?", "What is it like?",
     "Is that so?", "I had a dog.", "Delete her number.", "", "10/10"],
)  # fmt: skip
def test_standing_alone(text: str) -> None:
    assert not leans(text)


def test_what_is_leant_on() -> None:
    assert leant_on(["We had a dog.", "He was big.", "Get another."]) == [0]
    assert leant_on(["He was big."]) == leant_on([]) == []


def test_what_is_leant_on_is_not_replaced(tmp_path: Path) -> None:
    agent = tiny_agent(tmp_path)
    span = ("Look at your mum.", "Lots of people don't.")
    state = EditState(Exchange("I failed.", " ".join(span)), span)
    actions, _ = agent.sample([state] * 200, range(200))
    positions = {action.position for action in actions}
    assert 3 not in positions  # insert at 0, 1 or 2; replace at 3 or 4; keep at 5
    assert {0, 1, 2, 4, 5} & positions
    scored = agent.log_probs([state] * 200, actions)
    assert torch.isfinite(scored.position_B).all()
