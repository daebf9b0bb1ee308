"""Lessons from the fits and from written edits: what is right becomes likelier."""

from pathlib import Path

import pytest
import torch

from policies.choosing.agent import ChoosingAgent
from policies.choosing.learning import Lesson, fitting_lessons, is_question, lesson_loss
from rewriting import Exchange
from rewriting.loop import EditState
from tests.policies.choosing.tiny import STATES, tiny_agent

STATE = STATES[0]


def learn(agent: ChoosingAgent, lesson: Lesson, steps: int = 60) -> list[float]:
    optimizer = torch.optim.Adam(agent.module.parameters(), lr=0.02)
    losses = []
    for _ in range(steps):
        loss, count = lesson_loss(agent, [lesson])
        assert count == 1.0
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


@pytest.mark.parametrize("position", [0, 3, 5])
def test_a_position_is_learnt(tmp_path: Path, position: int) -> None:
    agent = tiny_agent(tmp_path)
    losses = learn(agent, Lesson(STATE, position))
    assert losses[-1] < 0.1 < losses[0]
    logits_P, _ = agent.scores(STATE, agent.choices(STATE))
    assert int(logits_P.argmax()) == position


def test_what_fits_becomes_likelier_where_it_is_at_home(tmp_path: Path) -> None:
    agent = tiny_agent(tmp_path)
    sentences = ("I am with you.", "How was it?", "Lucky you.")
    lesson = Lesson(STATE, None, sentences, (True, True, False))
    learn(agent, lesson)
    _, scores_KL = agent.scores_of(STATE, sentences, [0.6] * 3)
    assert scores_KL[:, 0].argmax() == 0  # a statement in front
    assert scores_KL[:, 2].argmax() == 1  # a question at the end


def test_a_lesson_without_a_fitting_question_teaches_statements_alone(tmp_path: Path) -> None:
    agent = tiny_agent(tmp_path)
    lesson = Lesson(STATE, None, ("I am with you.", "Why?"), (True, False))
    assert learn(agent, lesson)[-1] < 0.2


def test_lessons_of_the_fits() -> None:
    lessons = list(fitting_lessons("dev", ["Try. Rest.", "No."], span_length=4, seed=0))
    assert lessons
    for lesson in lessons:
        assert any(lesson.fits)
        assert not all(lesson.fits)
        assert len(lesson.fits) == len(lesson.sentences) <= 8
        assert lesson.position is None
        assert lesson.state.exchange.response_post in ("Try. Rest.", "No.")
    again = list(fitting_lessons("dev", ["Try. Rest.", "No."], span_length=4, seed=0))
    assert again == lessons


def test_questions() -> None:
    assert is_question("How was it? ")
    assert not is_question("I see.")
    state = EditState(Exchange("Post", "Reply."), ("Reply.",))
    assert Lesson(state, 0).size == 4
