"""Would kind words in the wrong place be called empathic, and which rewards would rise?

    python evaluate.py probe --model epitome --contexts chats.jsonl --json out.json

Inserts the seeds of Lee et al. (2023) into exchanges that call for no empathy, moves empathic
replies to other people's posts, and shows which reward terms an agent could exploit.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from recipes.shared.tables import TableSettings, may_write, percent, print_table
from rewriting.errors import UserError
from rewriting.runtime.settings import borrowed

DEFAULT_REWARDS = (
    "{empathy_change: 1, fluency: 1, coherence: {neutral: null}, mutual_information: 1, "
    "contrast: 1, kindness: 1, specificity: 1, edit_size: 1, repetition: 1}"
)


@dataclass
class Config:
    """Settings of `evaluate.py probe`."""

    model: str = field(
        default="in-context",
        metadata={
            "help": "Identifier to probe: in-context, grounded, epitome, a folder of train.py, "
            "judge:MODEL, or ensemble:NAME,NAME."
        },
    )
    contexts: str = field(
        default="sample:test",
        metadata={
            "help": "Exchanges into which kind sentences are inserted; everyday chats tell most."
        },
    )
    replies: str = field(
        default="sample:test",
        metadata={"help": "Labelled exchanges whose replies are moved to other posts; '': none."},
    )
    replies_split: str = field(
        default="all",
        metadata={
            "help": "Use only the replies of this split by seeker: train, dev or test; all: every "
            "reply."
        },
    )
    rewards: str = field(
        default=DEFAULT_REWARDS,
        metadata={"help": "Reward terms that are tested on the insertions, as YAML; '{}': none."},
    )
    reward_rows: int = field(
        default=90,
        metadata={"help": "Maximum number of contexts that the reward terms are computed on."},
    )
    limit: int = borrowed(TableSettings, "limit")
    seed: int = field(default=0, metadata={"help": "Seed for drawing the place of each insertion."})
    json: str = borrowed(TableSettings, "json")
    overwrite: bool = borrowed(TableSettings, "overwrite_json")


def run(config: Config) -> dict[str, Any]:
    """Run both probes and the watch over rewards; prints tables and writes JSON."""
    from recipes.shared.sources import labelled_exchanges
    from rewards.audit.probe import context_sensitivity, insertion_probe, mismatch_probe
    from rewards.identifiers.named import load_identifier
    from rewriting.data import load_exchanges
    from rewriting.runtime.files.disk import write_json

    may_write(config.json, config.overwrite)
    contexts = list(load_exchanges(config.contexts, limit=config.limit or None))
    if not contexts:
        raise UserError(f"{config.contexts} holds no exchange.")
    replies = []
    if config.replies:
        replies = labelled_exchanges(config.replies, config.replies_split, config.limit)
    identifier = load_identifier(config.model)
    figures: dict[str, Any] = insertion_probe(identifier, contexts, config.seed)
    show_insertions(config, figures)
    mismatched = mismatch_probe(identifier, replies)
    sensitivity = context_sensitivity(figures, mismatched)
    if replies:
        figures["mismatched"] = mismatched
        show_mismatches(config, mismatched)
    figures["context_sensitivity"] = sensitivity
    show_sensitivity(config, sensitivity)
    if config.rewards not in ("", "{}"):
        figures["rewards"] = watch_rewards(config, identifier, contexts)
    if config.json:
        write_json(Path(config.json), figures)
    return figures


def show_insertions(config: Config, figures: dict[str, Any]) -> None:
    rows = []
    for mechanism, one in figures.items():
        rows.append(
            [
                mechanism,
                percent(one["flagged_before"]),
                percent(one["flagged_after"]),
                str(one["n"]),
            ]
        )
        rows += [
            [f"  {sentence}", "", percent(share), ""] for sentence, share in one["seeds"].items()
        ]
    title = (
        f"{config.model}: % called empathic in {config.contexts}, before and after a kind sentence"
    )
    print_table(title, ["mechanism and seed", "before", "after", "n"], rows)


def show_mismatches(config: Config, figures: dict[str, Any]) -> None:
    names = ("flagged_in_place", "flagged_moved", "auroc", "n")
    rows = [[m, *(percent(one[name]) for name in names)] for m, one in figures.items()]
    title = (
        f"{config.model}: empathic replies of {config.replies}, in place and moved to other posts"
    )
    print_table(title, ["mechanism", "% in place", "% moved", "AUROC", "n"], rows)


def show_sensitivity(config: Config, figures: dict[str, float]) -> None:
    """One line: what kind words do where they make no sense, and what replies lose elsewhere."""
    called = f"{percent(figures['flagged_before'])} → {percent(figures['flagged_after'])}"
    moved = ["", ""]
    if "auroc" in figures:
        levels = f"{figures['expected_in_place']:.2f} → {figures['expected_moved']:.2f}"
        moved = [levels, percent(figures["auroc"])]
    print_table(
        "context-sensitivity, mean over mechanisms: a model that reads the post keeps the first "
        "low, lets the second fall, and has an AUROC near 100",
        ["model", "% called: before → after", "expected level: in place → moved", "AUROC"],
        [[config.model, called, *moved]],
    )


def watch_rewards(config: Config, identifier: Any, contexts: list[Any]) -> dict[str, Any]:
    from rewards.audit.probe import rising_terms
    from rewards.named import Models, build_rewards

    terms = build_rewards(config.rewards, Models(identifier=identifier)).terms
    watched = {name: term.reward for name, term in terms.items()}
    found = rising_terms(watched, contexts[: config.reward_rows], config.seed)
    rows = [
        [name, f"{rise.mean_change:+.3f}", percent(rise.share_rising), str(rise.n)]
        for name, rise in found.items()
    ]
    title = "reward terms after a kind sentence that makes no sense: what an agent could exploit"
    print_table(title, ["term", "mean change", "% rising", "n"], rows)
    return {name: asdict(rise) for name, rise in found.items()}
