"""Nothing in a folder runs, leads out of it, or takes all memory; each is refused in one line."""

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rewriting.errors import UserError
from rewriting.runtime.files.folder_checks import check_folder
from rewriting.runtime.models import named as models
from tests.tiny_lm import write_tiny_encoder, write_tiny_llama

ROOT = Path(__file__).parents[4]
EVIL = "import pathlib\npathlib.Path({mark!r}).touch()\n"


def changed(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_tiny_llama(tmp_path / "model")


def test_a_plain_folder_passes(model: Path) -> None:
    (model / ".git").mkdir()
    (model / ".git" / "hook.py").write_text("")
    (model / "pytorch_model.bin").write_bytes(b"")  # never loaded
    check_folder(model)
    models.load_causal(str(model))


def nested(folder: Path) -> None:
    (folder / "generation_config.json").write_text('{"a":' * 5000 + "1" + "}" * 5000)


def large(folder: Path) -> None:
    with (folder / "generation_config.json").open("wb") as file:
        file.truncate(1 << 30)


def linked(folder: Path) -> None:
    (folder / "vocabulary.txt").symlink_to("/etc/hostname")


def linked_folder(folder: Path) -> None:
    (folder / "more").symlink_to("/etc")


def index(folder: Path) -> None:
    weights = {"weight_map": {"model.norm.weight": "../../model.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(weights))


CHANGES: dict[str, Callable[[Path], object]] = {
    "modeling_evil.py is code": lambda f: (f / "modeling_evil.py").write_text("1 / 0"),
    "weights.PKL is code": lambda f: (f / "weights.PKL").write_bytes(b""),
    r"config\.json names code to run .auto_map": lambda f: changed(
        f / "config.json", auto_map={"AutoConfig": "evil.Config"}
    ),
    r"tokenizer_config\.json names code": lambda f: changed(
        f / "tokenizer_config.json", auto_map={"AutoTokenizer": ["evil.Tokenizer", None]}
    ),
    r"vocabulary\.txt is a link": linked,
    "more is a link": linked_folder,
    "pipe is no plain file": lambda f: os.mkfifo(f / "pipe"),
    r"model\.safetensors\.index\.json: '\.\./\.\./model\.safetensors' leads out": index,
    r"tokenizer_config\.json: '/etc/passwd' leads out .*; remove 'vocab_file'": lambda f: changed(
        f / "tokenizer_config.json", vocab_file="/etc/passwd"
    ),
    r"generation_config\.json cannot be read .nested": nested,
    r"generation_config\.json cannot be read .1,073,741,824 bytes": large,
    r"config\.json: num_hidden_layers is 1000000000": lambda f: changed(
        f / "config.json", num_hidden_layers=10**9
    ),
    r"config\.json: hidden_size is 1000000000": lambda f: changed(
        f / "config.json", hidden_size=10**9
    ),
    r"config\.json cannot be read": lambda f: (f / "config.json").write_bytes(b"\xff{"),
}


@pytest.mark.parametrize("message", CHANGES)
def test_what_runs_leads_out_or_is_too_large_is_refused(model: Path, message: str) -> None:
    CHANGES[message](model)
    for load in (models.load_causal, models.load_config):
        with pytest.raises(UserError, match=f"was refused: {message}") as caught:
            load(str(model))
        assert "\n" not in str(caught.value)


def test_paths_that_transformers_writes_and_does_not_open_are_no_harm(model: Path) -> None:
    written = {"special_tokens_map_file": "/home/somebody/special_tokens_map.json"}
    changed(model / "tokenizer_config.json", **written)
    models.load_causal(str(model))


@pytest.mark.parametrize(
    "changes",
    [
        {"hidden_size": 24},
        {"hidden_size": "sixteen"},
        {"num_attention_heads": 0},
        {"model_type": "evil"},
        {"vocab_size": -1},
        {"rope_parameters": 3},
        {"dtype": "__import__('os')"},
    ],
)
def test_malformed_settings_are_one_line(model: Path, changes: dict[str, Any]) -> None:
    changed(model / "config.json", **changes)
    with pytest.raises(UserError, match=r"does not hold a loadable model|another kind") as caught:
        models.load_causal(str(model))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("evil.Module", ""),
        ("os.path.join", ""),
        ("sentence_transformers.models.Pooling", "/etc"),
        ("sentence_transformers.models.Pooling", "../other"),
        (3, ""),
    ],
)
def test_a_sentence_encoder_imports_no_module_of_its_folder(
    tmp_path: Path, kind: Any, path: str
) -> None:
    folder = write_tiny_encoder(tmp_path)
    rows = json.loads((folder / "modules.json").read_text())
    rows[1] |= {"type": kind, "path": path}
    (folder / "modules.json").write_text(json.dumps(rows))
    with pytest.raises(UserError, match=r"was refused: modules\.json: "):
        models.load_sentence_encoder(str(folder))


def test_a_policy_folder_with_code_runs_nothing_and_asks_nothing(tmp_path: Path) -> None:
    """A policy of rank 0 brings a model of its own, and stdin would say yes to everything."""
    mark = tmp_path / "it ran"
    policy = tmp_path / "policy"
    write_tiny_llama(policy / "model")
    (policy / "model" / "evil.py").write_text(EVIL.format(mark=str(mark)))
    changed(
        policy / "model" / "config.json",
        model_type="evil",
        auto_map={"AutoConfig": "evil.Config", "AutoModelForCausalLM": "evil.Model"},
    )
    (policy / "policy.json").write_text('{"kind": "edit_policy", "backbone": "x", "rank": 0}')
    command = [sys.executable, "-m", "rewriting", "rewrite", "--policy", str(policy)]
    command += ["--seeker", "I failed.", "--response", "Try again."]
    result = subprocess.run(
        command, input="y\n" * 20, text=True, capture_output=True, check=False, cwd=ROOT
    )
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"error: {policy} was refused: ")
    assert not mark.exists()


def calls_of(name: str) -> list[tuple[Path, ast.Call]]:
    """Every call of a method or class of that name in the packages."""
    found = []
    for package in ("rewriting", "rewards", "policies", "recipes"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call):
                    called = getattr(node.func, "attr", getattr(node.func, "id", ""))
                    found += [(path, node)] if called == name else []
    return found


@pytest.mark.parametrize("name", ["from_pretrained", "SentenceTransformer"])
def test_every_loader_says_that_no_code_is_run(name: str) -> None:
    """Without an explicit False, transformers asks at the terminal."""
    calls = calls_of(name)
    assert calls
    for path, call in calls:
        on_a_model = ast.unparse(call.func).startswith("PeftModel.")  # weights for a loaded model
        said = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
        given = said.get("trust_remote_code")
        if None in said:  # **options, which the same file fills
            (given,) = re.findall(r'"trust_remote_code"(?:: |\] = )(\w+)', path.read_text())
        assert on_a_model or given == "False", f"{path}:{call.lineno}"
