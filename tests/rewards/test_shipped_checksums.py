"""The models in the package are those that were saved."""

from pathlib import Path

import pytest

from rewriting.runtime.files.model_files import CHECKSUM, WEIGHTS, read_model_settings

SHIPPED = Path(__file__).parents[2] / "rewards" / "shipped"
MODELS = {
    "alignment": ("alignment.json", "alignment.safetensors"),
    "appraisals": ("appraisals.json", "appraisals.safetensors"),
    "coherence": ("config.json", "model.safetensors"),
    "context": ("context.json", "context.safetensors"),
    "identifier": ("identifier.json", "identifier.safetensors"),
    "kindness": ("kindness.json", "kindness.safetensors"),
    "reader": ("reader.json", "reader.safetensors"),
    "sense": ("sense.json", "sense.safetensors"),
}


@pytest.mark.parametrize("name", MODELS)
def test_settings_and_weights_are_as_they_were_saved(name: str) -> None:
    settings, weights = MODELS[name]
    found = read_model_settings(SHIPPED / name, settings, weights=weights, called=name)
    assert found
    assert not {CHECKSUM, WEIGHTS} & set(found)


def test_every_model_of_the_package_is_looked_at() -> None:
    described = {path.parent.name for path in SHIPPED.glob("*/*.safetensors")}
    assert described - {"reverse_lm"} == set(MODELS)  # that one is an adapter, in PEFT's files
