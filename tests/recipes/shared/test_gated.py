"""Rewriting behind the gate: held back, rejected, sampled again, allowed by name, and counted."""

import json
import logging
from collections.abc import Sequence
from pathlib import Path

import pytest

from policies.best_of import BestOf
from policies.named import POLICIES
from recipes.cli import main
from recipes.shared.gated import TRIES, Guard, rewrite_safely
from recipes.shared.sources import load_splits
from rewriting import Edit, Exchange, Rewrite
from rewriting.runtime.seeds import derive_seed
from rewriting.safety import HELP, Gate

CRISIS = Exchange("I want to kill myself.", "Try again.", id="1")
VEILED = Exchange("I can't do this anymore. Goodbye.", "Rest.", id="2")
CLEAR = Exchange("I failed the exam.", "Try again.", id="3")


class Says:
    """Puts a sentence in front that the seed decides on; keeps whom it was asked for."""

    name = "says"

    def __init__(self, **sentences: str) -> None:
        self.sentences = sentences
        self.calls: list[tuple[int, list[str]]] = []

    def rewrite(self, exchanges: Sequence[Exchange], *, seed: int) -> list[Rewrite]:
        self.calls.append((seed, [one.id for one in exchanges]))
        sentence = self.sentences.get(f"at{len(self.calls)}", "I am so sorry.")
        edit = Edit.insert(0, sentence)
        return [Rewrite(one, f"{sentence} {one.response_post}", (edit,)) for one in exchanges]


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
    assert row.result() == Rewrite(CLEAR, "Try again.")
    (reason,) = row.row("")["reasons"]
    assert reason == 'every rewrite was rejected, insult: "you are an idiot"'


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


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(["rewrite", *arguments])
    assert isinstance(stop.value.code, int)
    return stop.value.code


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    monkeypatch.chdir(tmp_path)
    rows = [one.row() for one in (CRISIS, VEILED, CLEAR)]
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return ("--input", "in.jsonl", "--output", "out.jsonl", "--policy", "generic", "--show", "0")


def lines() -> list[dict[str, dict[str, str]]]:
    return [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]


def test_the_command_holds_back_and_shows_help(
    files: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*files) == 0
    out = capsys.readouterr().out
    assert "0 unchecked (not English). `safety` says why." in out
    assert HELP in out
    verdicts = [line["safety"]["verdict"] for line in lines()]
    assert verdicts[0] == "crisis"
    assert verdicts[1] in ("possible", "crisis")  # the reader's to say
    assert verdicts[2] == "clear"
    assert [line["rewritten_response"] == line["response_post"] for line in lines()] == [
        True, True, False,
    ]  # fmt: skip
    Path("help.txt").write_text("Call 000.\n")
    assert run(*files, "--overwrite", "--help-text", "help.txt") == 0
    assert "Call 000." in capsys.readouterr().out
    assert lines()[0]["safety"]["help"] == "Call 000."


def test_the_command_allows_a_crisis_by_name_and_warns(
    files: tuple[str, ...], capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    assert run(*files, "--allow-crisis") == 0
    assert "--allow-crisis" in caplog.text
    assert "2 posts that may be a crisis were rewritten" in capsys.readouterr().out
    assert [line["safety"].get("allow_crisis", False) for line in lines()] == [True, True, False]
    assert all(line["rewritten_response"] != line["response_post"] for line in lines())


def test_the_command_takes_a_classifier_and_fails_closed(files: tuple[str, ...]) -> None:
    Path("own.py").write_text("def broken(text):\n    raise OSError('no disk')\n")
    assert run(*files, "--classifier", "own.py:broken") == 0
    assert [line["safety"]["verdict"] for line in lines()] == ["crisis"] * 3
    assert lines()[2]["safety"]["reasons"][0] == "the classifier failed: OSError: no disk"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--classifier", "gone.py:f"), "no such file"),
        (("--help-text", "gone.txt"), "--help-text gone.txt"),
    ],
)
def test_mistakes_are_one_line(
    files: tuple[str, ...], capsys: pytest.CaptureFixture[str], flags: tuple[str, ...], message: str
) -> None:
    assert run(*files, *flags) == 1
    assert message in capsys.readouterr().err
    assert not Path("out.jsonl").exists()


def test_one_text_shows_why_and_whom_to_call(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(POLICIES, "says", Says)
    texts = ("--seeker", CRISIS.seeker_post, "--response", "Try.", "--policy", "says")
    assert run(*texts) == 0
    out = capsys.readouterr().out
    assert "kill myself" in out
    assert "findahelpline.com" in out


def test_training_leaves_crises_out_and_counts_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [Exchange(f"I failed exam {n}.", "Try again.").row() for n in range(60)]
    rows += [Exchange(f"I want to die, day {n}.", "Try again.").row() for n in range(40)]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert sum(map(len, load_splits(str(path)).values())) == 100
    with caplog.at_level(logging.INFO):
        kept = load_splits(str(path), keep_crisis=False)
    assert sum(map(len, kept.values())) == 60
    assert all("exam" in one.seeker_post for part in kept.values() for one in part)
    assert "crises left out" in caplog.text


def test_the_bundled_sample_loses_nothing() -> None:
    assert load_splits("sample", keep_crisis=False) == load_splits("sample")


def test_a_sentence_about_somebody_whom_nobody_named_is_rejected() -> None:
    policy = Says(at1="How did your wife take it?")
    (row,) = rewrite_safely(policy, [CLEAR], Guard(Gate()), seed=0)
    assert row.result().rewritten_response == "I am so sorry. Try again."
    assert row.row("")["rejected"] == ['nobody spoke of: "your wife"']
