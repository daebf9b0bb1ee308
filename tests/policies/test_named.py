"""Policies by name, and the shipped ones."""

import json
import shutil
from pathlib import Path

import pytest

from policies.chat.rewriter import RewriterSettings, read_rewriter, write_rewriter
from policies.editing.settings import read_settings
from policies.named import (
    POLICIES,
    TRAINED,
    edits_replies,
    load_bare_policy,
    policy_digest,
    policy_folder,
)
from rewriting import UserError

WEIGHT_FILES = ("adapter_model.safetensors", "position_head.safetensors")


def test_an_unknown_policy_is_named() -> None:
    with pytest.raises(UserError, match=r"no policy 'nobody'.*generic"):
        load_bare_policy("nobody")
    assert set(POLICIES) >= {"generic", "prompted"}


@pytest.mark.parametrize("name", [name for name in TRAINED if name.startswith("partner")])
def test_what_is_shipped_is_whole(name: str) -> None:
    folder = policy_folder(name)
    backbone, settings = read_settings(folder)
    assert backbone == "smollm2-135m"
    assert settings.rank
    sizes = [(folder / part).stat().st_size for part in WEIGHT_FILES]
    assert sum(sizes) < 6_000_000
    assert "python train.py partner" in (folder / "README.md").read_text(encoding="utf-8")


def test_a_setting_may_have_its_name_of_an_earlier_release(tmp_path: Path) -> None:
    (tmp_path / "policy.json").write_text(
        '{"kind": "edit_policy", "backbone": "smollm2-135m", "targets": ["q_proj"]}'
    )
    assert read_settings(tmp_path)[1].lora_layers == ("q_proj",)


@pytest.mark.parametrize(
    "text",
    [
        '{"kind":' * 5000 + "1" + "}" * 5000,
        '{"kind": "edit_policy", "backbone": "smollm2-135m", "rank": 1000000000}',
        '{"kind": "edit_policy", "backbone": "smollm2-135m", "rank": 8.5}',
        '{"kind": "edit_policy", "backbone": "smollm2-135m", "head_width": 1e300}',
        '{"kind": "edit_policy", "backbone": "smollm2-135m", "temperature": NaN}',
        '{"kind": "edit_policy", "backbone": "smollm2-135m", "lora_layers": [["q_proj"]]}',
        '{"kind": "edit_policy", "backbone": 3}',
        '{"kind": "edit_policy", "backbone": "\\ud83d"}',
        '{"kind": "edit_policy", "backbone": "smollm2-135m", "sha256": {"../x": ""}}',
        '{"kind": "edit_policy", "backbone": "smollm2-135m", "sha256": {"%s": ""}}' % ("p" * 5000),
        '{"kind": "edit_policy", "backbone": "smollm2-135m", "sha256": {"%s": ""}}' % ("p/" * 900),
        '{"kind": "edit_policy", "backbone": "smollm2-135m", "sha256": 3}',
        '{"kind": "generator", "model": "flan-t5-small", "num_virtual_tokens": 1000000000}',
        '{"kind": "generator", "model": "flan-t5-small", "value_width": true}',
        '{"kind": "rewriter", "max_new_tokens": -1}',
        '{"kind": "editor", "model": ["smollm2-135m"]}',
        "3",
    ],
)
def test_malformed_settings_are_refused_before_a_model_is_loaded(tmp_path: Path, text: str) -> None:
    (tmp_path / "policy.json").write_text(text)
    with pytest.raises(UserError, match=r"was refused|does not describe") as caught:
        load_bare_policy(str(tmp_path))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("name", TRAINED)
def test_shipped_policies_are_what_was_saved(name: str) -> None:
    from rewriting.runtime.files.policy_files import CHECKSUMS, weights_of

    described = json.loads((TRAINED[name] / "policy.json").read_text())
    assert described[CHECKSUMS] == weights_of(TRAINED[name]) != {}


def test_a_changed_scale_of_an_adapter_is_refused(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text('{"lora_alpha": 16}')
    write_rewriter(tmp_path, RewriterSettings())
    assert read_rewriter(tmp_path) == RewriterSettings()
    (tmp_path / "adapter_config.json").write_text('{"lora_alpha": 61}')
    with pytest.raises(UserError, match=r"adapter_config\.json is missing or damaged"):
        read_rewriter(tmp_path)


def test_a_policy_is_found_on_the_hub_as_in_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str]] = []

    def hub_folder(name: str, needed: str) -> Path:
        asked.append((name, needed))
        return TRAINED["partner-start"]

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rewriting.runtime.models.hub.hub_folder", hub_folder)
    monkeypatch.setattr(
        "policies.editing.agent.EditAgent.load", lambda folder, name: (folder, name)
    )
    assert load_bare_policy("org/agent") == (TRAINED["partner-start"], "org/agent")  # type: ignore[comparison-overlap]
    assert policy_folder("org/agent") == TRAINED["partner-start"]
    assert edits_replies("org/agent")
    assert policy_digest("org/agent") == policy_digest("partner-start")
    assert set(asked) == {("org/agent", "policy.json")}
    (tmp_path / "runs").mkdir()
    with pytest.raises(UserError, match="no policy 'runs/partnr'"):  # a path, mistyped
        load_bare_policy("runs/partnr")


def test_when_the_hub_was_asked_changes_no_digest(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(TRAINED["partner-start"], tmp_path / "policy"))
    before = policy_digest(str(folder))
    (folder / ".cache").mkdir()
    (folder / ".cache/looked").write_text("now")
    assert policy_digest(str(folder)) == before == policy_digest("partner-start")
