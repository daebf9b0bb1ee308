"""Policies by name, and the shipped ones."""

import pytest

from policies.editing.settings import read_settings
from policies.named import POLICIES, TRAINED, load_policy, policy_folder
from rewriting import UserError

WEIGHT_FILES = ("adapter_model.safetensors", "position_head.safetensors")


def test_an_unknown_policy_is_named() -> None:
    with pytest.raises(UserError, match=r"no policy 'nobody'.*generic"):
        load_policy("nobody")
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
