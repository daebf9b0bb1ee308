"""What `rewriting train` and `rewriting evaluate` share, and train.py and evaluate.py with them:
picking a recipe, reading its dataclass, one-line errors."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from recipes.shared.flags.checks import check_early
from recipes.shared.flags.fields import parse
from rewriting.errors import UserError
from rewriting.runtime.loading import did_you_mean
from rewriting.runtime.processes import join_processes

TRAINING: dict[str, str] = {
    "partner": "recipes.train.partner.recipe",
    "bank": "recipes.train.bank",
    "grpo": "recipes.train.grpo.recipe",
    "identifier": "recipes.train.identifier.recipe",
    "emprl": "recipes.train.emprl.recipe",
    "coherence": "recipes.train.coherence",
    "context": "recipes.train.context",
    "micromodels": "recipes.train.micromodels",
    "reader": "recipes.train.reader.recipe",
    "kindness": "recipes.train.kindness",
    "sense": "recipes.train.sense.recipe",
    "crisis": "recipes.train.crisis.recipe",
    "reverse_lm": "recipes.train.reverse_lm",
    "appraisals": "recipes.train.appraisals",
    "alignment": "recipes.train.alignment",
}
"""Recipe → module. A module holds `Config`, a documented dataclass, and `run(config)`."""

EVALUATION: dict[str, str] = {
    "alignment": "recipes.evaluate.alignment",
    "audit": "recipes.evaluate.audit.table",
    "identifier": "recipes.evaluate.identifier",
    "probe": "recipes.evaluate.probe",
    "responses": "recipes.evaluate.responses.table",
    "rewrites": "recipes.evaluate.rewrites.table",
}
"""The same for the tables of evaluate.py."""

TRAINING_EXAMPLE = "partner --steps 8 --output runs/first"
EVALUATION_EXAMPLE = "rewrites --systems original,generic --data sample:test"

RANKS = ("RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK")
"""Where torchrun and three kinds of MPI tell a process its rank: those that accelerate reads."""


def run_training(arguments: list[str] | None = None, program: str = "train.py") -> None:
    """`train.py` and `rewriting train`: the first word picks the recipe, the rest fills its fields.

    Without any word: the quick PARTNER run, which is what the defaults of that recipe are.
    """
    join_processes()
    _run(program, TRAINING, (sys.argv[1:] if arguments is None else arguments) or ["partner"])


def run_evaluation(arguments: list[str] | None = None, program: str = "evaluate.py") -> None:
    """`evaluate.py` and `rewriting evaluate`: the first word picks the table."""
    _run(program, EVALUATION, sys.argv[1:] if arguments is None else arguments)


def _run(program: str, recipes: Mapping[str, str], arguments: list[str]) -> None:
    logging.basicConfig(format="%(message)s", level=logging.INFO)
    logging.getLogger("sentence_transformers").setLevel(logging.WARNING)  # it names every load
    try:
        if not arguments or arguments[0] in ("-h", "--help"):
            print(_overview(program, recipes))
            raise SystemExit(0 if arguments else 2)
        name, *rest = arguments
        if name not in recipes:
            raise UserError(
                f"there is no recipe {name!r}. {did_you_mean(name, recipes)}"
                f"Recipes: {', '.join(recipes)}."
            )
        module = import_module(recipes[name])
        config = parse(module, f"{program} {name}", rest)
        if hasattr(module, "check"):
            module.check(config)
        check_early(config)
        with _only_run_in(getattr(config, "output", "")):
            module.run(config)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


@contextmanager
def _only_run_in(output: str) -> Iterator[None]:
    """Refuse to train into a folder that another run is training into, before models are loaded.

    Of several processes the first one asks, and its end ends the others. Tables have no folder.
    The lock stands in the folder: where runs go to a mounted one, its parent may be read-only.
    """
    if not output or any(os.environ.get(name, "") not in ("", "0") for name in RANKS):
        yield
        return
    from rewriting.runtime.files.folders import only_writer

    with only_writer(Path(output), inside=True):
        yield


def _overview(program: str, recipes: Mapping[str, str]) -> str:
    lines = [f"usage: {program} RECIPE [--config FILE.yaml|NAME] [--field value …]", "", "recipes:"]
    for name, module in recipes.items():
        summary = (import_module(module).__doc__ or "").strip().split("\n")[0]
        lines.append(f"  {name:<14}{summary}")
    typed = program if program.startswith("rewriting") else f"python {program}"
    example = TRAINING_EXAMPLE if recipes is TRAINING else EVALUATION_EXAMPLE
    lines += ["", "example:", f"  {typed} {example}"]
    lines += ["", f"{program} RECIPE --help explains every field."]
    return "\n".join(lines)
