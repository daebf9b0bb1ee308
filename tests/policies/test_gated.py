"""Rewriting behind the gate: held back, rejected, sampled again, and given back with reasons."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from policies import load_policy
from policies.best_of import BestOf
from policies.gated import TRIES, GatedPolicy, Guard, rewrite_safely
from policies.named import POLICIES
from rewriting import Exchange, Rewrite, UserError
from rewriting.runtime.seeds import derive_seed
from rewriting.safety import Gate
from tests.policies.says import CLEAR, CRISIS, VEILED, Says


def test_a_crisis_and_a_possible_one_come_back_as_they_were() -> None:
    policy = Says()
    rows = rewrite_safely(policy, [CRISIS, VEILED, CLEAR], Guard(Gate()), seed=5)
    assert policy.calls == [(5, ["3"])]
    texts = [row.result().rewritten_response for row in rows]
    assert texts == ["Try again.", "Rest.", "I am so sorry. Try again."]
    crisis, veiled, clear = (row.row("Call.") for row in rows)
    assert crisis == {
        "verdict": "crisis",
        "reasons": ['explicit: "kill myself"'],
        "help": "Call.",
    }
    assert veiled["verdict"] == "possible"
    assert clear == {"verdict": "clear", "reasons": []}


def test_the_override_is_recorded() -> None:
    (row,) = rewrite_safely(Says(), [CRISIS], Guard(Gate(), allow_crisis=True), seed=0)
    assert row.result().rewritten_response == "I am so sorry. Try again."
    safety = row.row("Call.")
    assert (safety["verdict"], safety["allow_crisis"], safety["help"]) == ("crisis", True, "Call.")


def test_a_rejected_rewrite_is_sampled_again_with_a_seed_of_its_own() -> None:
    policy = Says(at1="You are an idiot.", at2="Take some xanax.")
    (row,) = rewrite_safely(policy, [CLEAR], Guard(Gate()), seed=5)
    assert row.result().rewritten_response == "I am so sorry. Try again."
    seeds = [seed for seed, _ in policy.calls]
    assert seeds == [5, derive_seed(5, "again", 1), derive_seed(5, "again", 2)]
    safety = row.row("")
    assert (safety["verdict"], safety["reasons"]) == ("clear", [])
    assert [reason.split(":")[0] for reason in safety["rejected"]] == [
        "insult",
        "medication advice",
    ]


class Longer:
    """A sum of rewards that likes long texts."""

    def score(self, *, completions: Sequence[str], **_: object) -> "Longer":
        self.totals = [float(len(text)) for text in completions]
        return self

    def row(self, index: int) -> dict[str, float | None]:
        return {"longer": self.totals[index]}


def test_the_reply_as_it_was_is_no_answer_to_a_rejection() -> None:
    policy = Says(at1="You have depression.")
    best = BestOf(policy, Longer(), 1, margin=0.5)  # type: ignore[arg-type]
    (row,) = rewrite_safely(best, [CLEAR], Guard(Gate()), seed=0)
    assert row.result().rewritten_response == "I am so sorry. Try again."
    assert len(policy.calls) == 2
    assert len(row.row("Call.")["rejected"]) == 1


def test_a_reply_that_no_rewrite_beats_is_left_alone_at_once() -> None:
    policy = Says()
    best = BestOf(policy, Longer(), 1, margin=100.0)  # type: ignore[arg-type]
    (row,) = rewrite_safely(best, [CLEAR], Guard(Gate()), seed=0)
    assert (row.result().rewritten_response, len(policy.calls)) == ("Try again.", 1)
    assert row.row("Call.") == {"verdict": "clear", "reasons": []}


def test_other_candidates_come_along_where_the_gate_lets_them() -> None:
    policy = Says(at1="You are an idiot.", at2="That hurts.", at3="I am so sorry for you.")
    best = BestOf(policy, Longer(), 3, margin=0.5)  # type: ignore[arg-type]
    (row,) = rewrite_safely(best, [CLEAR], Guard(Gate()), seed=0, others=True)
    assert row.result().rewritten_response == "I am so sorry for you. Try again."
    texts = [rewrite.rewritten_response for rewrite, _ in row.others]
    assert texts == ["That hurts. Try again.", "Try again."]
    assert row.others[1][1] == {"longer": float(len("Try again."))}


def test_a_crisis_has_no_other_candidates() -> None:
    best = BestOf(Says(), Longer(), 2, margin=0.5)  # type: ignore[arg-type]
    (row,) = rewrite_safely(best, [CRISIS], Guard(Gate()), seed=0, others=True)
    assert (row.rewrite, row.others) == (None, [])


def test_where_no_rewrite_is_left_the_reply_comes_back_with_the_reason() -> None:
    policy = Says(**{f"at{number}": "You are an idiot." for number in range(1, TRIES + 1)})
    (row,) = rewrite_safely(policy, [CLEAR], Guard(Gate()), seed=5)
    assert len(policy.calls) == TRIES
    reason = 'every rewrite was rejected, insult: "you are an idiot"'
    assert row.result() == Rewrite(CLEAR, "Try again.", reasons=(reason,))
    assert row.row("")["reasons"] == [reason]


def test_a_reply_that_was_not_changed_is_not_rejected() -> None:
    class Keeps:
        name = "keeps"

        def rewrite(self, exchanges: Sequence[Exchange], *, seed: int) -> list[Rewrite]:
            return [Rewrite(one, one.response_post) for one in exchanges]

    rude = Exchange("I failed.", "You are an idiot.")
    (row,) = rewrite_safely(Keeps(), [rude], Guard(Gate()), seed=0)
    assert row.row("") == {"verdict": "clear", "reasons": []}


class Strict:
    """A kindness model that takes whatever names a mother for hurtful. Keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def hurtful(self, sentences: Sequence[str]) -> list[str]:
        self.asked += sentences
        return [sentence for sentence in sentences if "mother" in sentence]

    def probabilities(self, sentences: Sequence[str]) -> list[float]:
        return [0.05 if "don't have to" in sentence else 0.5 for sentence in sentences]


def test_a_sentence_that_hurts_is_rejected_and_only_new_ones_are_read() -> None:
    kindness, policy = Strict(), Says(at1="Even your mother gave up on you.")
    kept = Exchange("I failed.", "My mother failed too.", id="4")
    (row,) = rewrite_safely(policy, [kept], Guard(Gate(), kindness), seed=0)  # type: ignore[arg-type]
    assert row.result().rewritten_response == "I am so sorry. My mother failed too."
    assert row.row("")["rejected"] == ['may hurt: "Even your mother gave up on you."']
    assert kindness.asked == ["Even your mother gave up on you.", "I am so sorry."]


class Doubtful:
    """A sense model that finds what names a party wrong where the post has none."""

    def unfit(self, post: str, sentences: Sequence[str]) -> list[str]:
        return [text for text in sentences if "party" in text and "party" not in post]


def test_a_sentence_that_is_wrong_for_its_post_is_rejected() -> None:
    policy = Says(at1="How did the party go?")
    guard = Guard(Gate(), sense=Doubtful())  # type: ignore[arg-type]
    (row,) = rewrite_safely(policy, [CLEAR], guard, seed=0)
    assert row.result().rewritten_response == "I am so sorry. Try again."
    assert row.row("")["rejected"] == ['wrong for this post: "How did the party go?"']
    invited = Exchange("I went to a party after the exam.", "Try again.", id="5")
    (row,) = rewrite_safely(Says(at1="How did the party go?"), [invited], guard, seed=0)
    assert "rejected" not in row.row("")


def test_a_sentence_about_somebody_whom_nobody_named_is_rejected() -> None:
    policy = Says(at1="How did your wife take it?")
    (row,) = rewrite_safely(policy, [CLEAR], Guard(Gate()), seed=0)
    assert row.result().rewritten_response == "I am so sorry. Try again."
    assert row.row("")["rejected"] == ['nobody spoke of: "your wife"']


def test_a_gated_policy_gives_the_reply_back_with_the_reason() -> None:
    policy = GatedPolicy(Says(), Guard(Gate()))
    crisis, clear = policy.rewrite([CRISIS, CLEAR], seed=5)
    assert crisis == Rewrite(CRISIS, "Try again.", reasons=('explicit: "kill myself"',))
    assert (clear.rewritten_response, clear.reasons) == ("I am so sorry. Try again.", ())
    assert (policy.name, policy.policy.calls) == ("says", [(5, ["3"])])  # type: ignore[union-attr]
    gated = policy.gated([CRISIS, CLEAR], seed=5)
    assert [row.verdict.verdict for row in gated] == ["crisis", "clear"]
    assert [row.result() for row in gated] == [crisis, clear]


def test_load_policy_puts_the_gate_around(monkeypatch: pytest.MonkeyPatch) -> None:
    gate, loaded = Gate(), []
    monkeypatch.setattr(Gate, "load", classmethod(lambda cls: loaded.append(1) or gate))
    monkeypatch.setitem(POLICIES, "says", Says)
    policy = load_policy("says")
    assert (policy.guard.gate is gate, loaded) == (True, [1])
    assert policy.rewrite([CRISIS])[0].reasons == ('explicit: "kill myself"',)
    own = Gate(help_text="Call.")
    assert load_policy("says", gate=own).guard.gate is own


def test_an_unknown_policy_is_said_before_the_gate_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(cls: object) -> Gate:
        raise AssertionError("the gate was loaded")

    monkeypatch.setattr(Gate, "load", classmethod(fail))
    with pytest.raises(UserError, match=r"no policy 'nobody'.*generic"):
        load_policy("nobody")


@pytest.mark.parametrize(
    ("sentence", "clear"),
    [
        ("You don't have to man up.", True),  # the model is sure that it is kind
        ("Just stop crying, will you.", False),
        ("You don't have to, but you should stop taking your medication.", False),
    ],
)
def test_the_model_overrules_rules_about_tone_and_no_others(sentence: str, clear: bool) -> None:
    rewrite = Rewrite(Exchange("I failed.", "Rest."), f"{sentence} Rest.")
    assert Guard(Gate(), Strict()).check(rewrite).clear is clear
    assert not Guard(Gate()).check(rewrite).clear  # without a model the rules stand alone
