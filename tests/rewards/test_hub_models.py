"""Identifiers and reward models by hub id, with a fake in the place of the hub."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from rewards.appraisals.alignment.model import SiameseAlignment, load_alignment
from rewards.appraisals.appraiser import SentenceAppraiser, load_appraiser
from rewards.identifiers.epitome.identifier import EpitomeIdentifier
from rewards.identifiers.grounded.identifier import GroundedIdentifier
from rewards.identifiers.in_context.gate import ContextGate, encoder_name
from rewards.identifiers.in_context.identifier import ContextualIdentifier
from rewards.identifiers.joint import JointIdentifier
from rewards.identifiers.micromodels.identifier import Micromodels
from rewards.identifiers.named import KINDS, SHIPPED, check_name, is_grounded, load_identifier
from rewards.models import Models
from rewards.reading.reader import SentenceReader
from rewards.reading.sense_model import SenseModel
from rewards.terms.coherence import CoherenceModel
from rewards.terms.kindness import KindnessModel
from rewards.terms.mutual_information import MutualInformation
from rewriting.errors import UserError
from rewriting.safety.reader.crisis_reader import CrisisReader

Hub = Callable[[dict[str, Path]], list[Any]]


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Hub:
    """Puts folders on the fake hub, and gives the list of what is asked of it."""

    def install(folders: dict[str, Path]) -> list[Any]:
        asked: list[Any] = []

        def hub_folder(name: str, *needed: str) -> Path:
            asked.append((name, *needed))
            if name not in folders:
                raise UserError(f"{name!r} could not be had")
            return folders[name]

        monkeypatch.setattr("rewriting.runtime.models.hub.hub_folder", hub_folder)
        return asked

    return install


LOADERS: dict[str, tuple[Callable[[str], Any], tuple[str, ...]]] = {
    "identifier": (load_identifier, KINDS),
    "epitome": (EpitomeIdentifier.load, ("identifier.json",)),
    "grounded": (GroundedIdentifier.load, ("reader.json",)),
    "joint": (JointIdentifier.load, ("sense.json",)),
    "micromodels": (Micromodels.load, ("micromodels.json",)),
    "in-context": (ContextualIdentifier.load, ("context.json",)),
    "gate": (ContextGate.load, ("context.json",)),
    "reader": (SentenceReader.load, ("reader.json",)),
    "sense": (SenseModel.load, ("sense.json",)),
    "kindness": (KindnessModel.load, ("kindness.json",)),
    "coherence": (CoherenceModel.load, ("config.json",)),
    "crisis": (CrisisReader.load, ("crisis.json",)),
    "appraisals": (SentenceAppraiser.load, ("appraisals.json",)),
    "alignment": (SiameseAlignment.load, ("alignment.json",)),
    "reverse_lm": (
        lambda name: MutualInformation(SimpleNamespace(attach=None), adapter=name),
        ("adapter_config.json",),
    ),
    "models.kindness": (lambda name: Models(kindness=name).kindness, ("kindness.json",)),
    "models.sense": (lambda name: Models(sense=name).sense, ("sense.json",)),
    "models.identifier": (lambda name: Models(identifier=name).identifier, KINDS),
}


@pytest.mark.parametrize("name", LOADERS)
def test_every_model_is_asked_for_by_the_file_that_tells_its_kind(hub: Hub, name: str) -> None:
    load, needed = LOADERS[name]
    asked = hub({})
    with pytest.raises(UserError, match="'my-org/own' could not be had"):
        load("my-org/own")
    assert asked == [("my-org/own", *needed)]


def test_an_identifier_of_the_hub_is_what_its_files_say(hub: Hub) -> None:
    hub({"my-org/own": SHIPPED / "reader", "my-org/gate": SHIPPED / "context"})
    check_name("my-org/own")
    check_name("ensemble:my-org/own,epitome")
    assert is_grounded("my-org/own")
    assert not is_grounded("my-org/gate")  # around `joint`
    assert encoder_name("my-org/gate") == "minilm-l6"
    with pytest.raises(UserError, match="'my-org/other' could not be had"):
        check_name("ensemble:my-org/own,my-org/other")


class Encoder:
    def encode(self, texts: list[str], **_: Any) -> Any:
        return torch.eye(384)[: len(texts)].numpy()


def test_a_reward_model_of_the_hub_is_that_of_its_folder(hub: Hub) -> None:
    hub({"my-org/own": SHIPPED / "coherence"})
    loaded = CoherenceModel.load("my-org/own", encoder=Encoder())
    beside = CoherenceModel.load(encoder=Encoder())
    assert loaded.temperature == beside.temperature
    pairs = [("I failed.", "So sorry.")]
    assert loaded.probabilities(pairs) == beside.probabilities(pairs)


def test_a_model_of_another_kind_is_no_coherence_model(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    (tmp_path / "model.safetensors").write_bytes(b"")
    hub({"my-org/bert": tmp_path})
    with pytest.raises(UserError, match="another kind of model, not a coherence model"):
        CoherenceModel.load("my-org/bert")


def test_names_of_other_libraries_still_load(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sentence encoder or a classifier of the hub is none of ours: it goes to its library."""
    asked = hub({})
    found: list[str] = []
    models = "rewriting.runtime.models.named.load_sentence_encoder"
    monkeypatch.setattr(models, lambda name: found.append(name))
    monkeypatch.setattr("rewards.appraisals.models.appraiser_by_name", found.append)
    load_alignment("some-org/encoder")
    load_appraiser("some-org/classifier")
    assert found == ["some-org/encoder", "some-org/classifier"]
    assert asked == [
        ("some-org/encoder", "alignment.json"),
        ("some-org/classifier", "appraisals.json"),
    ]
