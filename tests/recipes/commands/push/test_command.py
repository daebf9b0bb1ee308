"""`rewriting push`, with a fake in the place of the hub."""

import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from policies.named import TRAINED
from recipes.cli import app
from recipes.commands.push.kinds import KINDS, POLICY, read_folder
from rewards.identifiers.named import SHIPPED
from rewriting.errors import UserError
from rewriting.safety.reader.crisis_reader import SHIPPED as CRISIS
from tests.rewriting.runtime.files.test_model_files import unsealed

NAME = "my-org/kind-editor"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(TRAINED["partner-start"], tmp_path / "policy"))


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What reaches the fake: each repository that is made, and each commit."""
    calls: list[Any] = []

    class FakeApi:
        def whoami(self) -> None: ...

        def create_repo(self, name: str, *, private: bool, exist_ok: bool) -> str:
            calls.append((name, private, exist_ok))
            return f"https://hub/{name}"

        def create_commit(self, name: str, operations: Any, *, commit_message: str) -> None:
            calls.append({one.path_in_repo: one.path_or_fileobj for one in operations})

    monkeypatch.setattr("huggingface_hub.HfApi", FakeApi)
    operation = lambda path, content: SimpleNamespace(path_in_repo=path, path_or_fileobj=content)  # noqa: E731
    monkeypatch.setattr("huggingface_hub.CommitOperationAdd", operation)
    return calls


def push(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, ["push", *map(str, arguments)])
    if result.exception:
        raise result.exception
    return result.output


def test_a_dry_run_shows_files_sizes_and_the_head_and_sends_nothing(
    folder: Path, sent: list[Any]
) -> None:
    (folder / "notes.txt").write_text("of mine")
    out = push(folder, NAME, "--dry-run")
    size = (folder / "adapter_model.safetensors").stat().st_size
    assert f"{size:,} bytes  adapter_model.safetensors" in out
    assert "not sent: notes.txt" in out
    head = yaml.safe_load(out.split("---\n")[1])
    assert head["base_model"] == "HuggingFaceTB/SmolLM2-135M-Instruct"
    assert head["library_name"] == "empathic-rewriting"
    assert "edit-policy" in head["tags"]
    assert "the card names no licence" in out
    assert "Nothing was sent" in out
    assert sent == []


def test_the_policy_is_sent_with_a_card_that_has_the_head(folder: Path, sent: list[Any]) -> None:
    out = push(folder, NAME, "--license", "apache-2.0")
    assert f"sent to https://hub/{NAME}" in out
    made, files = sent
    assert made == (NAME, True, True)  # private, unless asked otherwise
    assert files.keys() == {path.name for path in folder.iterdir()}
    assert files["policy.json"] == folder / "policy.json"
    head, card = files["README.md"].decode().split("---\n", 2)[1:]
    assert yaml.safe_load(head)["license"] == "apache-2.0"
    assert card == (folder / "README.md").read_text()


def test_a_public_repository_has_to_be_asked_for(folder: Path, sent: list[Any]) -> None:
    push(folder, NAME, "--public")
    assert sent[0] == (NAME, False, True)


def test_a_card_with_a_head_of_its_own_keeps_it(folder: Path, sent: list[Any]) -> None:
    own = "---\nlicense: mit\n---\n# My agent\n"
    (folder / "README.md").write_text(own)
    assert "the card names no licence" not in push(folder, NAME)
    assert sent[1]["README.md"].decode() == own


def test_a_model_that_only_this_machine_has_is_said(folder: Path) -> None:
    described = json.loads((folder / "policy.json").read_text())
    described["backbone"] = str(folder)
    (folder / "policy.json").write_text(json.dumps(described))
    out = push(folder, NAME, "--dry-run")
    assert f"warning: it is built on {folder}, which others cannot load" in out
    assert "base_model" not in out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "README.md").unlink(), "there is no card in"),
        (lambda folder: (folder / "policy.json").unlink(), "holds no policy, identifier or reward"),
        (lambda folder: (folder / "policy.json").write_text("3"), "does not say what kind"),
        (lambda folder: (folder / "policy.json").write_text("{"), "policy.json cannot be read"),
        (lambda folder: (folder / "model.py").write_text(""), "model.py is code"),
        (lambda folder: (folder / "position_head.safetensors").unlink(), "missing or damaged"),
        (lambda folder: shutil.rmtree(folder), "there is no folder"),
    ],
)
def test_what_is_not_fit_to_be_sent_is_refused(
    folder: Path, sent: list[Any], change: Any, message: str
) -> None:
    change(folder)
    with pytest.raises(UserError, match=message):
        push(folder, NAME)
    assert sent == []


def test_the_folder_of_a_run_is_told_from_that_of_its_policy(folder: Path) -> None:
    with pytest.raises(UserError, match=f"Did you mean {folder}"):
        push(folder.parent, NAME, "--dry-run")


@pytest.mark.parametrize("name", ["agent", "my org/agent", "a/b/c", "../x"])
def test_a_name_has_two_parts(folder: Path, name: str) -> None:
    with pytest.raises(UserError, match="it is ORG/NAME"):
        push(folder, name, "--dry-run")


def test_offline_is_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class OfflineApi:
        def whoami(self) -> None:
            raise ConnectionError("no route\nto the hub")

    monkeypatch.setattr("huggingface_hub.HfApi", OfflineApi)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    with pytest.raises(UserError, match=rf"{NAME} could not be sent to the hub \(no route\)"):
        push(folder, NAME)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(UserError, match=r"the hub is switched off \(HF_HUB_OFFLINE\)"):
        push(folder, NAME)


SHIPPED_MODELS = [*sorted(path for path in SHIPPED.iterdir() if path.is_dir()), CRISIS]
TELLING = {"coherence": "config.json", "reverse_lm": "adapter_config.json"}


@pytest.mark.parametrize("shipped", SHIPPED_MODELS, ids=lambda path: path.name)
def test_every_shipped_model_is_told_by_its_files(shipped: Path) -> None:
    kind, described = read_folder(shipped)
    assert kind.settings == TELLING.get(shipped.name, f"{shipped.name}.json")
    assert described.items() <= json.loads((shipped / kind.settings).read_text()).items()


def test_every_shipped_policy_is_a_policy() -> None:
    assert {read_folder(folder)[0] for folder in TRAINED.values()} == {POLICY}


def test_every_kind_but_one_is_shipped() -> None:
    told = {read_folder(folder)[0].settings for folder in SHIPPED_MODELS}
    assert {kind.settings for kind in KINDS} - told == {"policy.json", "micromodels.json"}


@pytest.fixture
def reader(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SHIPPED / "reader", tmp_path / "run" / "model"))


def test_an_identifier_is_sent_with_the_models_it_stands_on(reader: Path, sent: list[Any]) -> None:
    out = push(reader, NAME, "--license", "apache-2.0")
    assert re.search(f"^used by others: rewriting score .* --model {NAME}$", out, re.M)
    made, files = sent
    assert made == (NAME, True, True)
    assert files.keys() == {"README.md", "reader.json", "reader.safetensors", "results.json"}
    head = yaml.safe_load(files["README.md"].decode().split("---\n", 2)[1])
    minilm, mpnet = (
        "sentence-transformers/all-MiniLM-L6-v2",
        "sentence-transformers/all-mpnet-base-v2",
    )
    assert head["base_model"] == [minilm, mpnet]
    assert head["pipeline_tag"] == "text-classification"
    assert {"reward-model", "empathy-identifier"} <= set(head["tags"])
    assert "warning" not in out


def test_a_dry_run_of_a_reward_model_sends_nothing(sent: list[Any]) -> None:
    out = push(SHIPPED / "kindness", NAME, "--dry-run")
    size = (SHIPPED / "kindness" / "kindness.safetensors").stat().st_size
    assert f"{size:,} bytes  kindness.safetensors" in out
    assert "kindness-model" in yaml.safe_load(out.split("---\n")[1])["tags"]
    assert sent == []


def test_a_gate_beside_an_identifier_of_this_machine_is_said(tmp_path: Path, reader: Path) -> None:
    gate = Path(shutil.copytree(SHIPPED / "context", tmp_path / "gate"))
    assert "warning: it is built on" not in push(gate, NAME, "--dry-run")
    unsealed(gate / "context.json", identifier=str(reader))
    assert f"warning: it is built on {reader}, which others" in push(gate, NAME, "--dry-run")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "reader.safetensors").write_bytes(b"x"), "missing or damaged"),
        (lambda folder: (folder / "reader.safetensors").unlink(), "missing or damaged"),
        (lambda folder: (folder / "reader.json").write_text("[" * 200_000), "cannot be read"),
        (lambda folder: (folder / "reader.json").write_text("{}"), "holds no policy, identifier"),
        (lambda folder: (folder / "evil.py").write_text(""), "evil.py is code"),
        (lambda folder: (folder / "README.md").unlink(), "what the empathy identifier learnt"),
    ],
)
def test_an_identifier_that_is_not_fit_to_be_sent_is_refused(
    reader: Path, sent: list[Any], change: Any, message: str
) -> None:
    change(reader)
    with pytest.raises(UserError, match=message):
        push(reader, NAME)
    assert sent == []


def test_a_run_is_told_from_its_model(reader: Path) -> None:
    with pytest.raises(UserError, match=f"Did you mean {reader}"):
        push(reader.parent, NAME, "--dry-run")
