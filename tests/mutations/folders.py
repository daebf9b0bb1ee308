"""Damaged folders: of policies, of rewriters, of models and of the cache of models."""

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from rewriting.errors import UserError
from rewriting.runtime.files.folders import write_manifest
from rewriting.runtime.language_models.backbone import Backbone
from rewriting.runtime.models import installed, wheels
from rewriting.runtime.models import named as models
from tests.mutations.bytes import copied, damage_folder
from tests.mutations.ends import one_line
from tests.tiny_lm import tiny_llama, tiny_tokenizer, write_tiny_llama


def weights_of(agent: Any) -> dict[str, torch.Tensor]:
    named = agent.module.named_parameters()
    return {name: tensor.detach().clone() for name, tensor in named}


@dataclass
class PolicyFolders:
    """The weights that were saved, or one line; no code is run."""

    folder: Path

    def __post_init__(self) -> None:
        from policies.editing.agent import EditAgent
        from policies.editing.settings import EditSettings

        self.agent, agent = EditAgent, EditAgent(self.backbone(), EditSettings(rank=2))
        for tensor in agent.module.parameters():
            if tensor.requires_grad:
                torch.nn.init.normal_(tensor)
        agent.save(self.folder)
        self.weights = weights_of(self.agent.load(self.folder, self.backbone()))

    @staticmethod
    def backbone() -> Backbone:
        return Backbone(tiny_llama(), tiny_tokenizer(), name="tiny")

    def __call__(self, chance: random.Random, work: Path) -> str:
        folder = copied(self.folder, work / "policy")
        damage_folder(folder, chance, work / "it ran")
        try:
            agent = self.agent.load(folder, self.backbone())
        except UserError as error:
            return one_line(error)
        now = weights_of(agent)
        assert now.keys() == self.weights.keys()
        assert all(torch.equal(now[name], self.weights[name]) for name in now), "other weights"
        return "loaded"


@dataclass
class RewriterFolders:
    """A chat model with the adapter that was saved, or one line; no code is run."""

    folder: Path

    def __post_init__(self) -> None:
        import peft

        from policies.chat.rewriter import RewriterSettings, write_rewriter

        lora = peft.LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False)
        peft.get_peft_model(tiny_llama(), lora).save_pretrained(self.folder)
        write_rewriter(self.folder, RewriterSettings(model="tiny"))
        self.weights = self.load(self.folder)

    @staticmethod
    def load(folder: Path) -> dict[str, torch.Tensor]:
        from policies.chat.rewriter import read_rewriter, with_adapter

        read_rewriter(folder)
        return with_adapter(tiny_llama(), folder).state_dict()

    def __call__(self, chance: random.Random, work: Path) -> str:
        folder = copied(self.folder, work / "rewriter")
        damage_folder(folder, chance, work / "it ran")
        try:
            now = self.load(folder)
        except UserError as error:
            return one_line(error)
        assert now.keys() == self.weights.keys()
        assert all(torch.equal(now[name], self.weights[name]) for name in now), "other weights"
        return "loaded"


@dataclass
class ModelCaches:
    """The weights that were installed, mended where a copy helps, or one line; no code is run."""

    folder: Path

    def __post_init__(self) -> None:
        write_tiny_llama(self.folder / "tiny")
        write_manifest(self.folder / "tiny", EDITION)
        with _patched(self.folder):
            installed.remember(self.folder / "tiny", EDITION)
        self.weights = tiny_llama().state_dict()

    def __call__(self, chance: random.Random, work: Path) -> str:
        cache = copied(self.folder, work / "cache")
        damage_folder(
            chance.choice((cache, cache / "tiny", cache / "tiny")), chance, work / "it ran"
        )
        with _patched(cache):
            try:
                model, _ = models.load_causal("tiny", device="cpu")
            except UserError as error:
                return one_line(error)
        state = model.state_dict()
        assert all(torch.equal(state[name], self.weights[name]) for name in state), "other weights"
        return "loaded"


LARGEST_COPIED = 5000  # bytes: every file of the toy but its weights
EDITION = {"version": "1.0", "sha256": "0" * 64, "conversion": 1}


def _no_network(*_: object, **options: object) -> Path:
    raise UserError("could not download tiny: there is no network here.")


class _patched:
    """The short name `tiny` in a cache folder, without a network; its weights have no copy."""

    def __init__(self, cache: Path) -> None:
        from rewriting.runtime.models.assembly import Wheel, WheelFiles
        from rewriting.runtime.models.convert import copied_folder

        contents = WheelFiles(Wheel("tiny", "1.0", "0" * 64), {})
        sizes = {"size": 1, "disk_size": 1, "convert": copied_folder}
        self.model = models.NamedModel("tiny", "", "", "", contents, **sizes)
        self.cache = cache

    def __enter__(self) -> None:
        self.before = models.cache_folder, wheels.download, installed.SPARE_BYTES
        installed.SPARE_BYTES = LARGEST_COPIED
        models.cache_folder = lambda: self.cache
        wheels.download = _no_network
        models.SHORT_NAMES["tiny"] = self.model

    def __exit__(self, *_: object) -> None:
        models.cache_folder, wheels.download, installed.SPARE_BYTES = self.before
        del models.SHORT_NAMES["tiny"]


@dataclass
class ModelFolders:
    """A folder that somebody names: loaded or one line; no code is run."""

    folder: Path

    def __post_init__(self) -> None:
        write_tiny_llama(self.folder)

    def __call__(self, chance: random.Random, work: Path) -> str:
        folder = copied(self.folder, work / "model")
        damage_folder(folder, chance, work / "it ran")
        try:
            models.load_causal(str(folder), device="cpu")
        except UserError as error:
            return one_line(error)
        return "loaded"
