"""`load_rewriter`: what `rewriting rewrite` rewrites with, from Python."""

from collections.abc import Sequence

import pytest

from policies.best_of import BestOf
from policies.gated import Guard
from policies.named import POLICIES
from recipes import load_rewriter
from recipes.shared.gated import Safety
from rewriting import UserError
from rewriting.safety import Gate
from tests.policies.says import CLEAR, CRISIS, Says


class Strict:
    """A kindness model that takes whatever names a mother for hurtful."""

    def hurtful(self, sentences: Sequence[str]) -> list[str]:
        return [sentence for sentence in sentences if "mother" in sentence]

    def probabilities(self, sentences: Sequence[str]) -> list[float]:
        return [0.5 for _ in sentences]


@pytest.fixture(autouse=True)
def _light(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(POLICIES, "says", Says)
    monkeypatch.setattr(Safety, "guard", lambda self: Guard(Gate(self.classifier), Strict()))


def longer(completions: Sequence[str], **_: object) -> list[float]:
    return [float(len(text)) for text in completions]


def test_it_ranks_candidates_behind_the_gate_and_its_readers() -> None:
    policy = load_rewriter("says", num_candidates=2, rewards={longer: 1.0})
    assert isinstance(policy.policy, BestOf)
    says = policy.policy.policy
    assert isinstance(says, Says)
    says.sentences = {"at1": "Even your mother gave up on you.", "at2": "I am so sorry."}
    crisis, clear = policy.gated([CRISIS, CLEAR], seed=3)
    assert (crisis.held_back, crisis.result().rewritten_response) == (True, "Try again.")
    assert clear.result().rewritten_response == "I am so sorry. Try again."
    assert clear.rewards == {"longer": 25.0}
    assert clear.rejected.keys() >= {'may hurt: "Even your mother gave up on you."'}


def test_its_arguments_are_those_of_the_command() -> None:
    assert isinstance(load_rewriter("says").policy, Says)  # one candidate, nothing to rank
    policy = load_rewriter("says", num_candidates=3, margin=2.0, rewards="{edit_size: 1.0}")
    assert isinstance(policy.policy, BestOf)
    assert (policy.policy.num_candidates, policy.policy.margin) == (3, 2.0)
    ranked = load_rewriter("says", num_candidates=2, rewards={"edit_size": 1.0}).policy
    assert isinstance(ranked, BestOf)
    assert ranked.margin is None  # with rewards of one's own, the reply competes only if told to
    held = load_rewriter("says", classifier=lambda text: "possible").rewrite([CLEAR])
    assert held[0].reasons == ("classifier: possible",)


def test_an_unknown_policy_is_said_before_the_readers_are_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(self: Safety) -> Guard:
        raise AssertionError("the readers were loaded")

    monkeypatch.setattr(Safety, "guard", fail)
    with pytest.raises(UserError, match="no policy 'nobody'"):
        load_rewriter("nobody")
