"""The card of what goes to the hub: its README, with the YAML head that the hub reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from recipes.commands.push.kinds import POLICY, Kind
from rewriting.distribution import DISTRIBUTION
from rewriting.runtime.files.policy_files import WHOLE_MODEL
from rewriting.runtime.models.catalogue import SHORT_NAMES
from rewriting.runtime.models.hub import is_hub_id

HEAD: Final = "---\n"
TAGS: Final = ("empathy", "peer-support")
MODELS: Final = ("backbone", "model", "encoder", "base_model_name_or_path")
"""The settings that name the model that something stands on."""


def models_of(described: dict[str, Any]) -> list[str]:
    """The models that something stands on, as its settings name them."""
    second = described.get("second")
    places = [described, second if isinstance(second, dict) else {}]
    found = [place.get(name) for place in places for name in MODELS]
    return [name for name in dict.fromkeys(found) if isinstance(name, str) and name]


def hub_id_of(model: str) -> str | None:
    """The hub id of a model; None where it has none there."""
    if model in SHORT_NAMES:
        return SHORT_NAMES[model].hub_id
    return model if is_hub_id(model) and not Path(model).is_dir() else None


def base_models(described: dict[str, Any]) -> list[str]:
    """The hub ids of the models that something stands on."""
    return [name for name in map(hub_id_of, models_of(described)) if name]


def local_models(folder: Path, described: dict[str, Any]) -> list[str]:
    """What it names and others cannot load by that name, since it is a folder here."""
    from rewards.identifiers.named import ENSEMBLE, JUDGE, NAMES

    whole = (folder / WHOLE_MODEL).is_dir()
    named = [] if whole else [name for name in models_of(described) if not hub_id_of(name)]
    inner = str(described.get("identifier", ""))
    loaded = not inner or inner in NAMES or inner.startswith((ENSEMBLE, JUDGE))
    return named if loaded or is_hub_id(inner) else [*named, inner]


def with_head(
    card: str, kind: Kind, described: dict[str, Any], licence: str | None
) -> tuple[str, str]:
    """The YAML head, and the card with it. A card that has one keeps its own."""
    if card.startswith(HEAD) and HEAD in card[len(HEAD) :]:
        head = card[: card.index(HEAD, len(HEAD)) + len(HEAD)]
        return head, card
    import yaml

    fields: dict[str, Any] = {"language": "en"}
    if licence:
        fields["license"] = licence
    if base := base_models(described):
        fields["base_model"] = base[0] if len(base) == 1 else base
    fields |= {"library_name": DISTRIBUTION, "pipeline_tag": kind.task}
    about = ["text-rewriting"] if kind is POLICY else ["reward-model"]
    fields["tags"] = [*TAGS, *about, name_of(kind, described).replace(" ", "-")]
    head = HEAD + yaml.safe_dump(fields, sort_keys=False) + HEAD
    return head, head + card


def name_of(kind: Kind, described: dict[str, Any]) -> str:
    """What it is in words: of a policy, which kind of policy."""
    return str(described["kind"]).replace("_", " ") if kind is POLICY else kind.called
