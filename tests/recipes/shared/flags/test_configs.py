"""Configs by path and by name."""

from pathlib import Path

import pytest

from recipes.shared.flags.configs import config_file, launch_configs, recipe_configs
from rewriting import UserError

ROOT = Path(__file__).parents[4]


def test_a_file_comes_before_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    known = recipe_configs()
    assert config_file("partner", known) == config_file("partner.yaml", known) == known["partner"]
    own = tmp_path / "partner.yaml"
    own.write_text("steps: 1\n")
    assert config_file("partner.yaml", known) == Path("partner.yaml")
    assert config_file("partner", known) == known["partner"]


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UserError, match=r"'partnr'.*Did you mean partner\? Names: .*emprl_paper"):
        config_file("partnr", recipe_configs())
    with pytest.raises(UserError, match=r"no config 'launch/gpus'"):
        config_file("launch/gpus", recipe_configs())


def test_what_docs_call_configs_is_what_the_package_holds() -> None:
    for name, path in (recipe_configs() | launch_configs()).items():
        assert (ROOT / f"configs/{name}.yaml").samefile(path)
    assert {"partner", "emprl", "grpo"} <= recipe_configs().keys()
    assert {"launch/gpus", "launch/fsdp"} <= launch_configs().keys()
