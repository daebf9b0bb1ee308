"""`rewriting rewrite --num-candidates --rewards`: the best sample, and why it is the best."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from policies.best_of import BestOf
from policies.named import POLICIES, default_candidates, edits_replies, policy_digest
from recipes.cli import main
from recipes.shared.rewriter import Rewriter, rewards_for
from rewards.named import rewards_mapping
from rewriting import Exchange, Rewrite

SHORTER = (
    "def shorter(completions, response_post, **_):\n    return [-len(c) for c in completions]\n"
)


class Dice:
    """Adds a word whose length the seed decides."""

    name = "dice"

    def rewrite(self, exchanges: Sequence[Exchange], *, seed: int) -> list[Rewrite]:
        return [Rewrite(one, one.response_post + " " + "o" * (1 + seed % 7)) for one in exchanges]


@pytest.fixture(autouse=True)
def dice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(POLICIES, "dice", Dice)
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(SHORTER)
    rows = [{"id": str(i), "seeker_post": "I failed.", "response_post": "Try."} for i in range(3)]
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(["rewrite", *arguments])
    assert isinstance(stop.value.code, int)
    return stop.value.code


FILES = ("--input", "in.jsonl", "--output", "out.jsonl", "--policy", "dice", "--show", "1")


def test_the_best_candidate_is_written_with_its_rewards(capsys: pytest.CaptureFixture[str]) -> None:
    rewards = "{own.py:shorter: 1, repetition: 0}"
    assert run(*FILES, "--seed", "6", "--num-candidates", "40", "--rewards", rewards) == 0
    rows = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert [row["id"] for row in rows] == ["0", "1", "2"]
    for row in rows:
        assert row["rewritten_response"] == "Try. o"
        assert row["rewards"] == {"shorter": -6.0, "repetition": 0.0}
        assert row["seed"] == 6
    assert "shorter -6" in capsys.readouterr().out


def test_one_candidate_is_the_policys_own() -> None:
    assert run(*FILES, "--seed", "6", "--rewards", "{own.py:shorter: 1}") == 0
    row = json.loads(Path("out.jsonl").read_text().splitlines()[0])
    assert (row["rewritten_response"], row["rewards"]) == ("Try. ooooooo", {"shorter": -12.0})
    assert run(*FILES, "--seed", "6", "--overwrite") == 0
    row = json.loads(Path("out.jsonl").read_text().splitlines()[0])
    assert (row["rewritten_response"], row["rewards"]) == ("Try. ooooooo", {})


def test_a_reply_stays_where_no_rewrite_is_better_by_the_margin() -> None:
    """The shortest rewrite, 'Try. o', is paid two less than the reply."""
    rewards = ("--num-candidates", "40", "--rewards", "{own.py:shorter: 1}")
    assert run(*FILES, *rewards, "--margin", "0") == 0
    row = json.loads(Path("out.jsonl").read_text().splitlines()[0])
    assert (row["rewritten_response"], row["edits"]) == ("Try.", [])
    assert row["rewards"] == {"shorter": -4.0}


def test_a_policy_that_edits_gets_four_candidates_and_a_margin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("policies.named.edits_replies", lambda name: name == "dice")
    monkeypatch.setattr("rewards.named.build_rewards", lambda rewards, models: None)
    found = Rewriter("dice").load()
    assert isinstance(found, BestOf)
    assert (found.num_candidates, found.margin) == (4, 0.5)
    own = Rewriter("dice", rewards="{repetition: 1}").load()
    assert isinstance(own, BestOf)
    assert (own.num_candidates, own.margin) == (4, None)
    assert isinstance(Rewriter("dice", num_candidates=1).load(), Dice)


def test_how_many_candidates_there_are_follows_from_the_kind_of_policy() -> None:
    assert edits_replies("bank")
    assert edits_replies("partner-start")
    assert not any(map(edits_replies, ("generic", "prompted", "emprl", "dice", "missing")))
    assert [default_candidates(name) for name in ("nearest", "bank", "generic")] == [12, 4, 1]


def test_a_sentence_of_the_bank_has_to_be_surely_welcome() -> None:
    assert rewards_mapping(rewards_for("partner-start"))["sense"] == 16
    for name in ("bank", "nearest"):
        assert rewards_mapping(rewards_for(name))["sense"] == {"weight": 64, "floor": 0.85}


def test_a_single_text_has_candidates_too(capsys: pytest.CaptureFixture[str]) -> None:
    texts = ("--seeker", "I failed.", "--response", "Try.", "--policy", "dice", "--json")
    assert run(*texts, "--num-candidates", "40", "--rewards", "{own.py:shorter: 1}") == 0
    assert json.loads(capsys.readouterr().out)["rewards"] == {"shorter": -6.0}


def test_an_unfinished_run_with_other_candidates_is_not_mixed_in(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from recipes.commands import rewrite

    monkeypatch.setattr(rewrite, "CHUNK", 1)
    monkeypatch.setattr(Dice, "calls", 0, raising=False)
    original = Dice.rewrite

    def failing(self: Dice, exchanges: Sequence[Exchange], *, seed: int) -> list[Rewrite]:
        Dice.calls += 1  # type: ignore[attr-defined]
        if Dice.calls > 2:  # type: ignore[attr-defined]
            raise KeyboardInterrupt
        return original(self, exchanges, seed=seed)

    monkeypatch.setattr(Dice, "rewrite", failing)
    with pytest.raises((SystemExit, KeyboardInterrupt)):
        main(["rewrite", *FILES])
    assert Path("out.jsonl.partial").exists()
    capsys.readouterr()
    assert run(*FILES, "--num-candidates", "2") == 1
    assert "other settings (num_candidates)" in capsys.readouterr().err
    rows = [json.loads(line) for line in Path(FILES[1]).read_text().splitlines()]
    rows[0]["history"] = ["I do not want to be here any more."]
    Path(FILES[1]).write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run(*FILES) == 1, "the gate reads the history"
    assert "other settings (content of the input)" in capsys.readouterr().err


def test_an_unknown_reward_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*FILES, "--rewards", "{applause: 1}") == 1
    assert "there is no reward 'applause'" in capsys.readouterr().err
    assert not Path("out.jsonl.partial").exists()


def test_json_is_for_one_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*FILES, "--json") == 1
    assert "--json goes with --seeker" in capsys.readouterr().err
    assert not Path("out.jsonl").exists()


def test_a_retrained_folder_is_another_policy(tmp_path: Path) -> None:
    """Its name stays, so an unfinished file has to know its content."""
    assert policy_digest("dice") == policy_digest("nowhere") == ""
    folder = tmp_path / "policy"
    folder.mkdir()
    (folder / "policy.json").write_text("{}")
    before = policy_digest(str(folder))
    assert before == policy_digest(str(folder)) != policy_digest("partner-start")
    (folder / "policy.json").write_text("{ }")
    assert policy_digest(str(folder)) != before
    (folder / "policy.json").rename(folder / "other.json")
    assert len({before, policy_digest(str(folder)), policy_digest(str(tmp_path))}) == 3
