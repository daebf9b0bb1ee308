"""Folders of reward models, of identifiers and of the crisis reader, as training writes them."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from rewriting.errors import UserError
from tests.mutations.bytes import copied, damage_folder
from tests.mutations.ends import one_line
from tests.rewards.reading.tiny import in_half_precision, write_tiny_bert
from tests.tiny_lm import write_tiny_encoder

State = dict[str, torch.Tensor]


def write_models(folder: Path) -> dict[str, Callable[[Path], State]]:
    """A folder for each kind; its name → what loads such a folder, and gives the weights."""
    from rewards.appraisals.appraiser import AppraisalHead, SentenceAppraiser
    from rewards.appraisals.appraiser import SentenceStates as States
    from rewards.identifiers.epitome.identifier import Architecture, EpitomeIdentifier
    from rewards.reading.sense_model import SenseModel
    from rewards.terms.coherence import CoherenceHead, CoherenceModel
    from rewards.terms.kindness import KindnessModel
    from rewriting.safety.reader.crisis_reader import CrisisReader

    bert = str(write_tiny_bert(folder.parent / "bert"))
    encoder = str(write_tiny_encoder(folder.parent))
    in_half_precision(KindnessModel(bert, 2, 32)).save(folder / "kindness")
    in_half_precision(SenseModel(bert, 2, 32)).save(folder / "sense")
    in_half_precision(CrisisReader(bert, 2, 32)).save(folder / "crisis")
    architecture = Architecture(encoder, rank=2, max_seeker_tokens=32, max_response_tokens=32)
    networks, tokenizer = architecture.build()
    identifier = EpitomeIdentifier(architecture, in_half_precision(networks), tokenizer, "tiny")
    identifier.save(folder / "identifier")
    head = in_half_precision(CoherenceHead(16, 3))
    CoherenceModel(None, head, temperature=1.5, encoder_name=encoder).save(folder / "coherence")
    states = States.load(encoder, rank=0)
    appraiser = SentenceAppraiser(states, in_half_precision(AppraisalHead(16, 0.1)), name="tiny")
    appraiser.save(folder / "appraiser")
    return {
        "kindness": lambda path: KindnessModel.load(path).state_dict(),
        "sense": lambda path: SenseModel.load(path).state_dict(),
        "crisis": lambda path: CrisisReader.load(path).state_dict(),
        "identifier": lambda path: EpitomeIdentifier.load(path).networks.state_dict(),
        "coherence": lambda path: CoherenceModel.load(path).head.state_dict(),
        "appraiser": lambda path: SentenceAppraiser.load(path).head.state_dict(),
    }


@dataclass
class RewardModels:
    """The weights that were saved, or one line; no code is run."""

    folder: Path

    def __post_init__(self) -> None:
        self.load = write_models(self.folder)
        self.weights = {name: load(self.folder / name) for name, load in self.load.items()}

    def __call__(self, chance: random.Random, work: Path) -> str:
        name = chance.choice(list(self.load))
        folder: Any = copied(self.folder / name, work / name)
        damage_folder(folder, chance, work / "it ran")
        try:
            now = self.load[name](folder)
        except UserError as error:
            return one_line(error)
        assert now.keys() == self.weights[name].keys()
        same = (torch.equal(now[key], one) for key, one in self.weights[name].items())
        assert all(same), f"other weights of {name}"
        return "loaded"
