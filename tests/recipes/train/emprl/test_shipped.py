"""What is shipped and said of the recipe: policies, ablations, settings and figures."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from policies.generating.settings import read_settings
from policies.named import load_bare_policy, policy_folder
from recipes.train.emprl.recipe import Config, run
from rewriting import Exchange
from tests.recipes.train.emprl.toys import changed, log

pytestmark = pytest.mark.usefixtures("identifier")

ROOT = Path(__file__).parents[4]


@pytest.mark.parametrize("name", ["emprl", "emprl-sft"])
def test_what_is_shipped_is_whole(name: str) -> None:
    folder = policy_folder(name)
    model, settings = read_settings(folder)
    assert model == "flan-t5-small"
    assert settings.adapter == "prefix"
    assert sum(file.stat().st_size for file in folder.iterdir()) < 1_000_000
    assert not (folder / "reference").exists()  # emprl-sft is that
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "python train.py emprl" in card
    assert "CC BY-NC" in card
    assert name == "emprl-sft" or "by the identifier `epitome`" in card
    for file in folder.glob("*.*"):
        if file.suffix != ".safetensors":
            assert "/tmp" not in file.read_text(encoding="utf-8")


@pytest.mark.integration
def test_the_shipped_ones_respond() -> None:
    rows = [Exchange("I failed my exam again.", "Oh."), Exchange("I won a race!", "Oh.")]
    for name in ("emprl", "emprl-sft"):
        found = load_bare_policy(name).rewrite(rows, seed=0)
        assert all(one.rewritten_response.strip() for one in found)


def decisive(settings: dict[str, Any]) -> dict[str, Any]:
    """Of a config file, all settings of the second stage that change what it learns."""
    aside = re.compile("sft_.*|model|output|data|targets|dev_rows|.*_every|.*micro_batch_size")
    return {k: v for k, v in vars(Config(**settings)).items() if not aside.fullmatch(k)}


def test_the_ablations_start_from_the_settings_of_the_whole() -> None:
    def read(name: str) -> dict[str, Any]:
        text = (ROOT / "configs" / name).read_text(encoding="utf-8")
        settings: dict[str, Any] = yaml.safe_load(text)
        return settings

    whole = read("emprl.yaml") | {"stage": "ppo", "from_policy": "emprl-sft"}
    assert decisive(read("emprl_ablation.yaml")) == decisive(whole)


def test_every_setting_is_explained_and_in_a_group() -> None:
    for field in fields(Config):
        assert field.metadata.get("help"), field.name
    page = (ROOT / "docs" / "emprl.md").read_text(encoding="utf-8")
    groups = page.split("| about | fields |")[1].split("\n\n")[0]
    assert sorted(re.findall(r"`(\w+)`", groups)) == sorted(field.name for field in fields(Config))


def test_every_figure_of_the_first_stage_is_explained(config: Config) -> None:
    run(changed(config, stage="sft"))
    page = (ROOT / "docs" / "emprl.md").read_text(encoding="utf-8")
    table = page.split("| in `sft/log.jsonl` |")[1].split("\n\n")[0]
    written = {name for row in log(Path(config.output) / "sft") for name in row}
    assert written == set(re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE))


def test_every_figure_of_the_training_log_is_explained() -> None:
    from tests.policies.training.documented import figures_of

    assert figures_of("emprl.md") == figures_of("ppo.md")
