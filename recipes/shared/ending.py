"""What every recipe says when its training has ended: how it went, where the files are, and what
to type next."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rewriting.report.run_summary import run_summary

logger = logging.getLogger(__name__)
Rows = Sequence[Mapping[str, float]]

STAGES: Final = {"warm_start": "warm start", "sft": "supervised", "adaptation": "adaptation"}
"""Folders of stages before the last one, whose own log they hold, and what they are called."""

FILES: Final = {
    "policy": "the trained policy, its results.json and a card",
    "model": "the trained model, its results.json and a card",
    "adapter": "the trained adapter, its results.json and a card",
    "sft/policy": "the policy after the first stage",
    "log.jsonl": "every figure, a line per step",
    "curves.png": "their curves",
    "loss.png": "the curve of the loss",
    "samples.jsonl": "what the policy wrote on the way: read some of it",
    "checkpoints": "what the same command goes on from; may be removed",
}

IDENTIFIER: Final = (
    "rewriting score --input sample:test --output scores.jsonl --model {folder}/model",
    "rewriting evaluate identifier --data sample --split test --model {folder}/model",
)
REWRITER: Final = (
    "rewriting rewrite --input sample:test --output rewrites.jsonl --policy {folder}/policy",
    "rewriting evaluate rewrites --systems original,trained={folder}/policy --data sample:test",
)
NEXT: Final[dict[str, tuple[str, ...]]] = {
    "partner": REWRITER,
    "bank": REWRITER,
    "grpo": REWRITER,
    "emprl": (
        "rewriting rewrite --input sample:test --output rewrites.jsonl --policy {policy}",
        "rewriting evaluate responses --systems human,trained={policy} --data sample:test",
    ),
    "identifier": IDENTIFIER,
    "reader": IDENTIFIER,
    "micromodels": IDENTIFIER,
    "sense": IDENTIFIER,
    "context": (
        IDENTIFIER[0],
        "rewriting evaluate probe --model {folder}/model --contexts sample:clubs",
    ),
    "appraisals": ("rewriting evaluate alignment --appraisals {folder}/model",),
    "alignment": ("rewriting evaluate alignment --alignment {folder}/model",),
    "coherence": (
        'in Python: build_rewards({{"coherence": 1.0}}, Models(coherence="{folder}/model"))',
    ),
    "kindness": (
        'in Python: build_rewards({{"kindness": 1.0}}, Models(kindness="{folder}/model"))',
    ),
    "reverse_lm": (
        "rewriting train partner --rewards '{{mutual_information: {{adapter: {folder}/adapter}}}}'",
    ),
    "crisis": ('in Python: Gate(reader=CrisisReader.load("{folder}/model"))',),
}
"""Recipe → what one does next with its result."""


def tell_ending(recipe: str, output: str | Path, rows: Rows | None = None) -> None:
    """Print the ending of a run, once, in the first process. rows: of a log that is no file."""
    print(ending(recipe, Path(output), rows), flush=True)


def ending(recipe: str, output: Path, rows: Rows | None = None) -> str:
    """The stages with what rose and fell, the files that are there, and what to type next."""
    stages: dict[str, Rows] = {title: read_log(output / folder) for folder, title in STAGES.items()}
    stages[recipe] = read_log(output) if rows is None else rows
    lines = [line for title, log in stages.items() for line in run_summary(log, title)]
    files = [(output / name, about) for name, about in FILES.items() if (output / name).exists()]
    lines += ["files", *(f"  {path}: {about}" for path, about in files)] if files else []
    return "\n".join([*lines, "next", *(f"  {line}" for line in next_steps(recipe, output))])


def next_steps(recipe: str, output: Path) -> list[str]:
    """What one does next, with the run's own folder in it."""
    # A run of the first stage alone has its policy there.
    policy = output / "policy" if (output / "policy").exists() else output / "sft" / "policy"
    return [line.format(folder=output, policy=policy) for line in NEXT[recipe]]


def read_log(folder: Path) -> list[dict[str, Any]]:
    """The rows of a log, none where there is no log. A line that cannot be read ends it."""
    import json

    path, rows = folder / "log.jsonl", []
    if path.is_file():
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                rows.append(json.loads(line))
            except ValueError:
                logger.warning("%s: line %d cannot be read", path, len(rows) + 1)
                break
    return rows
