"""What can be wrong is said before a model is loaded: names, data, outputs, runs in the way.

    check_early(config)                    # every field of a recipe or table, by its name

A check reads names, settings files and first rows: it takes milliseconds and imports no torch.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from recipes.shared.sources import names_for, sources_of
from recipes.shared.tables import may_write
from rewriting.errors import UserError
from rewriting.runtime.settings import check_bounds

if TYPE_CHECKING:
    from recipes.shared.rewriter import Rewriter


def check_early(config: Any) -> None:
    """Check the fields of a recipe or table, one by one; the first mistake is raised."""
    if is_dataclass(config):
        check_bounds(config)
    trains = hasattr(config, "output")
    checks = CHECKS if trains else TABLE_CHECKS
    columns = getattr(config, "columns", "")
    for one in fields(config) if is_dataclass(config) else ():
        value = getattr(config, one.name)
        check = check_folder if one.metadata.get("folder") else checks.get(one.name)
        if one.name == "data" and columns and value != "":
            check_sources(value, columns)
        elif check is not None and value != "":
            check(value)
    if trains:
        check_run(config)
    for name in ("json", "html"):
        check_file_to_write(getattr(config, name, ""), getattr(config, "overwrite", False))


def check_sources(data: Any, columns: str = "") -> None:
    """Read the first row of each source, so that its place, its kind and its header are right."""
    sources = sources_of(text_of(data))
    if not sources:
        raise UserError("no data is named. Give a file, a folder, a hub id, or sample.")
    for source in sources:
        check_source(source, columns)


def check_source(source: str, columns: str = "") -> None:
    """Read the first row of a source; of the hub it is asked whether it has the data set."""
    from rewriting.data.load import hub_id, load_exchanges
    from rewriting.runtime.models.hub_check import hub_problem

    name, names = hub_id(source), names_for(source, columns)
    problem = hub_problem(name, "dataset") if name else ""
    if problem:
        raise UserError(
            f"{name!r} is neither a file nor a folder here, and did not come from the hub "
            f"({problem}). Check the spelling, or the network."
        )
    if not name and next(load_exchanges(source, limit=1, columns=names), None) is None:
        raise UserError(f"{source} holds no exchange.")


def check_folder(folder: Any) -> None:
    if not Path(text_of(folder)).expanduser().is_dir():
        raise UserError(f"{folder}: there is no such folder.")


def check_file(file: Any) -> None:
    if not Path(text_of(file)).expanduser().is_file():
        raise UserError(f"{file}: there is no such file.")


def check_corpora(names: Any) -> None:
    """The corpora of sentences that fit a post."""
    from rewriting.data.fits import CORPORA
    from rewriting.runtime.loading import did_you_mean

    for name in sources_of(text_of(names)):
        if name not in CORPORA:
            raise UserError(
                f"sentences are of {' or '.join(CORPORA)}, not {name!r}. "
                + did_you_mean(name, CORPORA).strip()
            )


def check_parts(source: Any) -> None:
    """Sources of counterfactuals: the beginning of two names, or one of them."""
    text = text_of(source)
    named = text if text.endswith(("_train", "_dev", "_test")) else f"{text}_train"
    check_source(named)


def check_identifier(name: Any) -> None:
    """An identifier's name, its folder, or those of an ensemble; a judge's name is its model's."""
    from rewards.identifiers.named import check_name

    check_name(text_of(name))


def check_judge_text(text: Any) -> None:
    """A judge of replies: a model's name, or options as YAML."""
    from rewards.judge.named import judge_options
    from rewards.judge.options import check_judge
    from rewards.terms.judge import JudgeTerm

    check_judge(judge_options(text_of(text), JudgeTerm))


def check_any_model(name: Any) -> None:
    """A short name, a folder with a model, or a name that the hub knows."""
    from rewriting.runtime.models.named import check_model

    check_model(text_of(name))


def check_folder_or_model(name: Any) -> None:
    """The folder of a recipe, or any model by name."""
    if not Path(text_of(name)).expanduser().is_dir() and name != "shipped":
        check_any_model(name)


def check_reward_names(rewards: Any) -> None:
    """The names, weights and options of rewards, as YAML or as a mapping."""
    from rewards.named import check_rewards

    if rewards not in ("", "{}"):
        check_rewards(rewards)


def check_compared(systems: Any) -> None:
    """The systems of a table: policies by name or folder, files of outputs, bare models."""
    from recipes.shared.systems import check_system, parse_systems

    for source in parse_systems(text_of(systems)).values():
        if source.startswith("model:"):
            check_any_model(source.removeprefix("model:"))
        elif source != "human":
            check_system(source)


def check_run(config: Any) -> None:
    """The folder that is trained into: can it be written, and was what is there such a run?"""
    output = Path(text_of(config.output)).expanduser()
    if output.exists() and not output.is_dir():
        raise UserError(f"output {output} is a file. Name a folder.")
    check_writable(output)
    check_same_run(output, config)


def check_same_run(output: Path, config: Any) -> None:
    """Refuse the folder of a run that had other settings, as far as its checkpoints name them."""
    from rewriting.runtime.training.run_files import settings_of_run

    now = vars(config)
    for folder, before in settings_of_run(output):
        known = {name: now.get(name, "no setting of this recipe") for name in before}
        changed = {name for name in before if _differ(before[name], known[name])}
        if changed:
            raise UserError(
                f"{folder} is of another run: "
                + "; ".join(
                    f"{n} was {before[n]!r} and is now {known[n]!r}" for n in sorted(changed)
                )
                + ". Use the former settings or another output folder."
            )


def check_rewriter(who: Rewriter) -> None:
    """Who rewrites and what ranks: names, rewards, the safety classifier, the help resources."""
    from policies.named import check_policy_name, trained_folder
    from recipes.shared.gated import read_help
    from recipes.shared.systems import check_folder as check_policy_folder
    from rewriting.runtime.loading import load_function

    check_policy_name(who.policy)
    if folder := trained_folder(who.policy):
        check_policy_folder(folder)
    if who.rewards is not None:
        check_reward_names(who.rewards)
    if isinstance(who.safety.classifier, str):
        load_function(who.safety.classifier)
    read_help(who.safety.help_text)


def check_writable(path: Path) -> None:
    """Refuse a folder that cannot be written, or that cannot be made."""
    nearest = next(one for one in (path.absolute(), *path.absolute().parents) if one.exists())
    if not nearest.is_dir():
        raise UserError(f"{path} cannot be made: {nearest} is a file. Name another output.")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise UserError(f"{path} cannot be written: {nearest} does not allow it.")


def check_file_to_write(path: str | Path, overwrite: bool) -> None:
    """Refuse a file that exists, unless it is to be replaced, or whose folder cannot be written."""
    if not path:
        return
    may_write(str(path), overwrite)
    if Path(path).is_dir():
        raise UserError(f"{path} is a folder. Name a file.")
    check_writable(Path(path).expanduser().parent)


def text_of(value: Any) -> str:
    """The text of a field; a file of settings may hold anything."""
    if not isinstance(value, str):
        raise UserError(f"a text is needed, not {value!r}.")
    return value


def _differ(before: Any, now: Any) -> bool:
    """Whether two values differ once they have been written as JSON."""
    import json

    return bool(before != json.loads(json.dumps(now, default=str)))


CHECKS: Final[dict[str, Callable[[Any], None]]] = {
    **dict.fromkeys(
        ("data", "extra_data", "adapt_data", "dialogues", "calm", "neutral", "warm_data"),
        check_sources,
    ),
    "sentences": check_corpora,
    "counterfactuals": check_parts,
    **dict.fromkeys(("model", "encoder", "second"), check_any_model),
    "identifier": check_identifier,
    "rewards": check_reward_names,
    **dict.fromkeys(("start", "encoder_from"), check_folder),
}
"""Field of a training recipe → what checks it. A field that is not here is free text, or is checked
by the recipe's own `check`; a test names those."""

TABLE_CHECKS: Final[dict[str, Callable[[Any], None]]] = {
    **dict.fromkeys(("data", "contexts", "replies"), check_sources),
    "model": check_identifier,
    **dict.fromkeys(("language_model", "sentence_encoder", "similarity"), check_any_model),
    **dict.fromkeys(("appraisals", "alignment"), check_folder_or_model),
    **dict.fromkeys(("rewards", "ranked_by"), check_reward_names),
    **dict.fromkeys(("stock", "rewrites", "log"), check_file),
    "systems": check_compared,
    "judge": check_judge_text,
}
"""The same for the tables of evaluate.py, where `model` is an identifier."""
