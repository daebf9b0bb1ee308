"""What can be sent to the hub: a policy, an identifier or a reward model, told by its files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rewriting.errors import UserError
from rewriting.runtime.files.folder_checks import check_folder
from rewriting.runtime.files.json_files import read_json
from rewriting.runtime.files.model_files import read_model_settings
from rewriting.runtime.files.policy_files import ADAPTER, FILE, check_weights
from rewriting.runtime.files.tensors import check_tensors

CARD: Final = "README.md"
SCORE: Final = "rewriting score --input replies.csv --output scores.jsonl"
CLASSIFIER, WRITER = "text-classification", "text-generation"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of folder.

    settings: the file that tells the kind, with the fields that it needs. weights: its tensors;
    empty where the settings hold checksums. task: what the hub calls what it does. use: how others
    load it, with NAME for the repository.
    """

    called: str
    settings: str
    needed: tuple[str, ...]
    weights: str
    task: str
    use: str

    def read(self, folder: Path) -> dict[str, Any] | None:
        """What the settings say; None where they are those of another kind."""
        if not (folder / self.settings).is_file():
            return None
        try:
            described = read_json(folder / self.settings)
        except (OSError, ValueError) as error:
            raise UserError(f"{folder / self.settings} cannot be read ({error}).") from error
        fits = isinstance(described, dict) and all(name in described for name in self.needed)
        if not self.weights and not (fits and isinstance(described["kind"], str)):
            raise UserError(f"{folder / self.settings} does not say what kind of policy this is.")
        # More weights than its own are those of a policy that has lost its settings.
        alone = {path.name for path in folder.glob("*.safetensors")} <= {self.weights}
        return described if fits and (alone or not self.weights) else None

    def check(self, folder: Path, described: dict[str, Any]) -> None:
        """Raise where the folder holds code or links, or the weights are missing or damaged."""
        check_folder(folder)
        if self.weights:
            check_tensors(folder / self.weights)
            read_model_settings(folder, self.settings, weights=self.weights, called=self.called)
        else:
            check_weights(folder, described)


def _identifier(name: str, *needed: str) -> Kind:
    use = f"{SCORE} --model NAME"
    files = f"{name}.json", ("encoder", *needed), f"{name}.safetensors"
    return Kind("empathy identifier", *files, CLASSIFIER, use)


def _reward(called: str, name: str, use: str, field: str = "encoder") -> Kind:
    return Kind(called, f"{name}.json", (field,), f"{name}.safetensors", CLASSIFIER, use)


POLICY: Final = Kind(
    "policy",
    FILE,
    ("kind",),
    "",
    WRITER,
    "rewriting rewrite --input replies.csv --output rewrites.jsonl --policy NAME",
)
KINDS: Final = (
    POLICY,
    _identifier("identifier"),
    _identifier("reader"),
    _identifier("micromodels"),
    _identifier("context", "identifier"),
    _identifier("sense"),
    _reward("kindness model", "kindness", 'in Python: Models(kindness="NAME")'),
    _reward("crisis reader", "crisis", 'in Python: Gate(reader=CrisisReader.load("NAME"))'),
    _reward("appraiser", "appraisals", f"{SCORE} --appraisals NAME", "kind"),
    _reward("alignment model", "alignment", f"{SCORE} --alignment NAME"),
    Kind(
        "coherence model",
        "config.json",
        ("encoder", "temperature", "width"),
        "model.safetensors",
        CLASSIFIER,
        'in Python: Models(coherence="NAME")',
    ),
    Kind(
        "backward language model",
        ADAPTER,
        ("base_model_name_or_path",),
        "adapter_model.safetensors",
        WRITER,
        "rewriting train partner --rewards '{mutual_information: {adapter: NAME}}'",
    ),
)
"""Looked for in this order, since a policy holds an adapter, too. A test has every shipped one."""

INSIDE: Final = ("policy", "model", "adapter")
"""Where a recipe writes its result, below the folder of the run."""


def read_folder(folder: Path) -> tuple[Kind, dict[str, Any]]:
    """The kind of a folder and its settings. One line where it is none of them, or unsafe, or has
    no card."""
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}.")
    found = next(kinds_of(folder), None)
    if found is None:
        below = (folder / name for name in INSIDE)
        guess = next((path for path in below if path.is_dir() and any(kinds_of(path))), None)
        raise UserError(
            f"{folder} holds no policy, identifier or reward model: there is none of "
            f"{', '.join(dict.fromkeys(kind.settings for kind in KINDS))} as a recipe writes it."
            + (f" Did you mean {guess}?" if guess else "")
        )
    if not (folder / CARD).is_file():
        raise UserError(
            f"there is no card in {folder}. Write a {CARD} that says what the {found[0].called} "
            "learnt from, how well it does and where it fails; recipes write one beside the "
            "weights."
        )
    found[0].check(folder, found[1])
    return found


def kinds_of(folder: Path) -> Iterator[tuple[Kind, dict[str, Any]]]:
    """The kinds that a folder can be of, the right one first."""
    for kind in KINDS:
        if (described := kind.read(folder)) is not None:
            yield kind, described
