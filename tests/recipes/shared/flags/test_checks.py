"""What can be wrong is said before a model is loaded: one line, at once, without torch."""

import json
import os
import subprocess
import sys
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from recipes.entry import EVALUATION, TRAINING
from recipes.shared.flags import checks as early
from rewriting.errors import UserError

OWN_REWARD = "def kind(completions, **_):\n    return [1.0 for _ in completions]\n"
GOOD_ROW = '{"seeker_post": "I failed.", "response_post": "Try again."}\n'
WRONG: dict[str, tuple[list[str], str]] = {
    "a recipe": (["train.py", "partnr"], "Did you mean partner?"),
    "a flag": (["train.py", "partner", "--step", "5"], "Did you mean --steps?"),
    "a number": (["train.py", "partner", "--steps", "many"], "--steps is a whole number"),
    "a field of a file": (["train.py", "partner", "--config", "typo.yaml"], "typo.yaml, line 2"),
    "a broken file": (["train.py", "partner", "--config", "broken.yaml"], "not valid YAML"),
    "a value of a file": (
        ["train.py", "partner", "--config", "value.yaml"],
        "steps is a whole number, not 'many'",
    ),
    "a bound": (["train.py", "partner", "--rank", "-1"], "rank must be 0 or more"),
    "a reward": (
        ["train.py", "partner", "--rewards", "{fluencyy: 1}"],
        "Did you mean fluency?",
    ),
    "an option of a reward": (
        ["train.py", "grpo", "--rewards", "{fluency: {logg: true}}"],
        "Did you mean log?",
    ),
    "a function of a reward": (
        ["train.py", "emprl", "--rewards", "{mine.py:kinder: 1}"],
        "Did you mean kind?",
    ),
    "an option of a classifier": (
        ["train.py", "partner", "--rewards", "{hf:org/model: {labell: joy}}"],
        "Did you mean label?",
    ),
    "an estimator": (
        ["train.py", "partner", "--estimator", "leave-one-out"],
        "Did you mean leave_one_out?",
    ),
    "a stage": (["train.py", "emprl", "--stage", "stf"], "Did you mean sft?"),
    "an output that is a file": (["train.py", "sense", "--output", "mine.py"], "is a file"),
    "an output of another run": (
        ["train.py", "coherence", "--output", "other", "--hidden", "32"],
        "hidden was 64 and is now 32",
    ),
    "a source": (["train.py", "partner", "--data", "gone.csv"], "no such file or folder"),
    "a header": (["train.py", "partner", "--data", "sample,header.csv"], "no column"),
    "a hub data set": (
        ["train.py", "reverse_lm", "--data", "org/data"],
        "the hub cannot be reached",
    ),
    "a corpus of sentences": (
        ["train.py", "partner", "--sentences", "sample:fit"],
        "Did you mean sample:fits?",
    ),
    "a folder of sentences": (["train.py", "kindness", "--data", "gone"], "no such folder"),
    "a model that is ignored": (
        ["train.py", "partner", "--model", "gpt2"],
        "set from_policy ''",
    ),
    "another model that is ignored": (
        ["train.py", "emprl", "--stage", "ppo", "--model", "t5-base"],
        "model t5-base would be ignored",
    ),
    "a policy to start from": (
        ["train.py", "partner", "--from_policy", "partner-strat"],
        "Did you mean partner-start?",
    ),
    "a model of the hub": (
        ["train.py", "coherence", "--encoder", "org/unknown"],
        "the hub cannot be reached",
    ),
    "a model's name": (["train.py", "crisis", "--encoder", "minilm-l7"], "Did you mean minilm-l6?"),
    "an identifier": (["train.py", "context", "--identifier", "epitom"], "Did you mean epitome?"),
    "a table": (["evaluate.py", "rewrite"], "Did you mean rewrites?"),
    "a member of an ensemble": (
        ["evaluate.py", "identifier", "--model", "ensemble:grounded,epitom"],
        "Did you mean epitome?",
    ),
    "a system": (
        ["evaluate.py", "rewrites", "--systems", "original,parner"],
        "Did you mean partner-start?",
    ),
    "a table's file": (["evaluate.py", "probe", "--json", "mine.py"], "Pass --overwrite"),
    "a command": (["rewriting", "rewritte"], "Did you mean 'rewrite'?"),
    "a flag of a command": (["rewriting", "score", "--inputt", "x"], "--input"),
    "rewards of rewrite": (
        ["rewriting", "rewrite", "--seeker", "a", "--response", "b", "--rewards", "{sens: 1}"],
        "Did you mean sense?",
    ),
    "rewards of serve": (["rewriting", "serve", "--rewards", "{sens: 1}"], "Did you mean sense?"),
    "a policy of rewrite": (
        ["rewriting", "rewrite", "--seeker", "a", "--response", "b", "--policy", "bnak"],
        "Did you mean bank?",
    ),
    "an identifier of score": (
        ["rewriting", "score", "--input", "good.jsonl", "--output", "x.csv", "--model", "joynt"],
        "Did you mean joint?",
    ),
    "an output of score": (
        ["rewriting", "score", "--input", "good.jsonl", "--output", "mine.py/x.jsonl"],
        "is a file",
    ),
    "an identifier of the hub": (
        ["rewriting", "score", "--input", "good.jsonl", "--output", "x.csv", "--model", "org/own"],
        "could not be had from the hub",
    ),
    "an output of another kind": (
        ["rewriting", "score", "--input", "good.jsonl", "--output", "x.txt"],
        "name a .jsonl, .parquet or .csv file",
    ),
    "a column of ours": (
        ["rewriting", "data", "check", "good.jsonl", "--columns", "seeker_pst=p"],
        "Did you mean seeker_post?",
    ),
    "half an exchange": (["rewriting", "rewrite", "--seeker", "a"], "each need a text"),
    "a classifier of rewrite": (
        ["rewriting", "rewrite", "--seeker", "a", "--response", "b", "--classifier", "mine.py:knd"],
        "Did you mean kind?",
    ),
    "a log of serve": (["rewriting", "serve", "--log", "mine.py/log"], "cannot be written"),
    "a port of serve": (["rewriting", "serve", "--port", "99999"], "--port"),
    "a folder to push": (
        ["rewriting", "push", "gone", "org/name", "--dry-run"],
        "there is no folder gone",
    ),
    "a folder of nothing to push": (
        ["rewriting", "push", "other", "org/name", "--dry-run"],
        "holds no policy, identifier or reward model",
    ),
    "a name to push to": (["rewriting", "push", "other", "agent", "--dry-run"], "it is ORG/NAME"),
    "a model to fetch": (["rewriting", "models", "fetch", "minilm-l7"], "Did you mean minilm-l6?"),
    "data to get": (["rewriting", "data", "get", "epitom"], "Did you mean epitome?"),
    "data to check": (["rewriting", "data", "check", "gone.csv"], "no such file or folder"),
    "a header of data to check": (["rewriting", "data", "check", "header.csv"], "question, answer"),
    "a config": (["rewriting", "configs", "partnr"], "Did you mean partner?"),
    "scores of insights": (
        ["rewriting", "insights", "--input", "gone.jsonl", "--output", "x.html"],
        "there is no such file",
    ),
    "a win rate": (["rewriting", "ab", "plan", "--win-rate", "2"], "--win-rate"),
    "one system of a study": (
        ["rewriting", "ab", "create", "--system", "a=good.jsonl", "--raters", "2", "--output", "s"],
        "two or more systems",
    ),
    "a study to serve": (["rewriting", "ab", "serve", "gone"], "there is no study.json"),
    "a study to report": (["rewriting", "ab", "report", "gone"], "there is no study.json"),
    "a study to export": (
        ["rewriting", "ab", "export", "gone", "--output", "votes.csv"],
        "there is no study.json",
    ),
    "an identifier of feedback": (
        ["rewriting", "feedback", "--seeker", "a", "--response", "b", "--model", "groundet"],
        "Did you mean grounded?",
    ),
}
"""Wrong input → the command line, and what the error has to say."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("wrong")


@pytest.fixture(scope="module")
def outcomes(folder: Path) -> dict[str, dict[str, Any]]:
    """What comes of every wrong input, tried in one interpreter. `left` is what stays behind."""
    (folder / "typo.yaml").write_text("steps: 4\nlearning_rat: 1\n")
    (folder / "broken.yaml").write_text("steps: [4\n")
    (folder / "value.yaml").write_text("steps: many\n")
    (folder / "mine.py").write_text(OWN_REWARD)
    (folder / "good.jsonl").write_text(GOOD_ROW)
    (folder / "header.csv").write_text("question,answer\na,b\n")
    step = folder / "other/checkpoints/step_00000004"
    step.mkdir(parents=True)
    state = {"step": 4, "settings": {"hidden": 64, "data": "sample"}, "parts": {}}
    (step / "state.json").write_text(json.dumps(state))
    before = {path.name for path in folder.iterdir()}
    nowhere = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HUB_OFFLINE": "", "HF_HOME": str(folder)}
    root = str(Path(__file__).parents[4])
    run = subprocess.run(
        [sys.executable, "-m", "tests.recipes.shared.flags.wrong_inputs"],
        input="".join(json.dumps(arguments) + "\n" for arguments, _ in WRONG.values()),
        env=os.environ | nowhere | {"PYTHONPATH": root, "TRANSFORMERS_OFFLINE": ""},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    found = map(json.loads, run.stdout.splitlines())
    left = {path.name for path in folder.iterdir()} - before
    return dict(zip(WRONG, found, strict=True)) | {"left": {"files": sorted(left)}}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_input_is_one_line_at_once(outcomes: dict[str, dict[str, Any]], name: str) -> None:
    found, message = outcomes[name], WRONG[name][1]
    assert not found["failure"]
    assert found["code"] in (1, 2)
    (line,) = found["err"].splitlines()
    assert line.startswith("error: ")
    assert message in line
    assert not found["torch"]
    assert found["seconds"] < 2


def test_nothing_is_half_written(outcomes: dict[str, dict[str, Any]]) -> None:
    assert outcomes["left"] == {"files": []}


def test_there_are_twenty_and_more_over_all_commands() -> None:
    from tests.recipes.commands_of import commands

    assert len(WRONG) >= 20
    tried = {words[1] for words, _ in WRONG.values() if words[0] == "rewriting"}
    assert {words[0] for words in commands() if words} - tried == {"train", "evaluate"}


FREE_TEXT = {
    "attention", "lora_layers", "target_levels_file", "report_to", "trl", "judge",
    "against", "outputs", "output", "columns",
    "json", "html", "from_policy", "estimator", "actions", "algorithm", "stage", "adapter",
    "arrangement", "seeds", "method", "split", "replies_split", "corpora",
}  # fmt: skip
"""Fields that are free text, or whose few values the recipe or `check_bounds` knows."""


@pytest.mark.parametrize("recipes", [TRAINING, EVALUATION])
def test_every_text_field_is_checked_or_known_to_need_no_check(recipes: dict[str, str]) -> None:
    checks = early.CHECKS if recipes is TRAINING else early.TABLE_CHECKS
    for module in recipes.values():
        config = import_module(module).Config
        hints = get_type_hints(config)
        texts = {one.name for one in fields(config) if hints[one.name] is str}
        assert texts <= checks.keys() | FREE_TEXT


def test_the_defaults_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for module in (*TRAINING.values(), *EVALUATION.values()):
        recipe = import_module(module)
        config = recipe.Config()
        if hasattr(recipe, "check"):
            recipe.check(config)
        early.check_early(config)
    assert list(tmp_path.iterdir()) == []


def test_the_same_run_goes_on(tmp_path: Path) -> None:
    from recipes.train.coherence import Config

    step = tmp_path / "run/checkpoints/step_00000004"
    step.mkdir(parents=True)
    state = {"step": 4, "settings": {"hidden": 64, "dropout": 0.3}, "parts": {}}
    (step / "state.json").write_text(json.dumps(state))
    early.check_early(Config(output=str(tmp_path / "run")))
    (step / "state.json").write_text("damaged")  # loading it knows what is wrong
    early.check_early(Config(output=str(tmp_path / "run")))
    state["settings"] = {"estimator": "ppo"}
    (step / "state.json").write_text(json.dumps(state))
    with pytest.raises(UserError, match="estimator was 'ppo' and is now 'no setting of this"):
        early.check_early(Config(output=str(tmp_path / "run")))


def test_a_folder_that_cannot_be_written_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    early.check_writable(tmp_path / "new/run")
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)
    with pytest.raises(UserError, match=f"cannot be written: {tmp_path} does not allow it"):
        early.check_writable(tmp_path / "new/run")
