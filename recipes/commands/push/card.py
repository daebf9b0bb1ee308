"""The card of a policy on the hub: its README, with the YAML head that the hub reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from rewriting.distribution import DISTRIBUTION
from rewriting.errors import UserError
from rewriting.runtime.files.folder_checks import check_folder
from rewriting.runtime.files.json_files import read_json
from rewriting.runtime.files.policy_files import FILE, WHOLE_MODEL
from rewriting.runtime.models.catalogue import SHORT_NAMES
from rewriting.runtime.models.hub import is_hub_id

CARD: Final = "README.md"
HEAD: Final = "---\n"
TAGS: Final = ("empathy", "peer-support", "text-rewriting")


def read_description(folder: Path) -> dict[str, Any]:
    """What policy.json says. One line where it or the card is missing, or something is unsafe."""
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}.")
    if not (folder / FILE).is_file():
        inside = folder / "policy"
        guess = f" Did you mean {inside}?" if (inside / FILE).is_file() else ""
        raise UserError(f"{folder} holds no policy: there is no {FILE} in it.{guess}")
    if not (folder / CARD).is_file():
        raise UserError(
            f"there is no card in {folder}. Write a {CARD} that says what the policy learnt from, "
            "how well it does and where it fails; recipes write one beside the weights."
        )
    check_folder(folder)
    described = read_json(folder / FILE)
    if not isinstance(described, dict) or not isinstance(described.get("kind"), str):
        raise UserError(f"{folder / FILE} does not say what kind of policy this is.")
    return described


def base_model(described: dict[str, Any]) -> str | None:
    """The hub id of the model that a policy stands on; None where it has none there."""
    name = described.get("backbone") or described.get("model")
    if not isinstance(name, str):
        return None
    if name in SHORT_NAMES:
        return SHORT_NAMES[name].hub_id
    return name if is_hub_id(name) and not Path(name).is_dir() else None


def local_model(folder: Path, described: dict[str, Any]) -> str | None:
    """The model that a policy names and that others cannot load, since it is a folder here."""
    name = described.get("backbone") or described.get("model")
    whole = (folder / WHOLE_MODEL).is_dir()
    return name if isinstance(name, str) and not whole and not base_model(described) else None


def with_head(card: str, described: dict[str, Any], licence: str | None) -> tuple[str, str]:
    """The YAML head, and the card with it. A card that has one keeps its own."""
    if card.startswith(HEAD) and HEAD in card[len(HEAD) :]:
        head = card[: card.index(HEAD, len(HEAD)) + len(HEAD)]
        return head, card
    import yaml

    fields: dict[str, Any] = {"language": "en"}
    if licence:
        fields["license"] = licence
    if base := base_model(described):
        fields["base_model"] = base
    fields |= {"library_name": DISTRIBUTION, "pipeline_tag": "text-generation"}
    fields["tags"] = [*TAGS, str(described["kind"]).replace("_", "-")]
    head = HEAD + yaml.safe_dump(fields, sort_keys=False) + HEAD
    return head, head + card
