"""Would this reward pay a stock sentence more than what the person really said?

    python evaluate.py audit --data sample:test --json audit.json --html audit.html
    python evaluate.py audit --data data/epitome --split dev --limit 60
    python evaluate.py audit --stock my_sentences.txt --rewards '{my_rewards.py:kinder: 1}'
    python evaluate.py audit --rewrites rewritten.jsonl

Takes the sentence that carries the empathy out of labelled replies, puts stock sentences, nonsense
and other posts' sentences in its place, and compares what the rewards pay for each. Run it before
training: what is paid more than the real sentence is what an agent will learn to say. With
--rewrites it asks of an agent's own sentences whether they are worth as much to somebody else.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recipes.shared.settings import PARTNER_REWARDS
from recipes.shared.tables import TableSettings, may_write, print_table
from rewriting.errors import UserError
from rewriting.runtime.settings import borrowed

if TYPE_CHECKING:
    from rewards.audit.audit import Audit, Item, Round
    from rewards.reward_sum import Scores

SHOWN_POSTS = 20
SHOWN_CARRIERS = 10
HEADLINES = {
    "matched_beats_every_stock": "every stock sentence",
    "matched_beats_wrong_post": "the real sentence of another post",
    "matched_beats_similar_post": "the real sentence of the most similar post",
    "matched_beats_every_nonsense": "every nonsense sentence",
}
KINDS = {
    "matched": "real",
    "stock": "stock",
    "nonsense": "nonsense",
    "wrong_post": "wrong post",
    "similar_post": "similar post",
}


@dataclass
class Config:
    """Settings of `evaluate.py audit`."""

    data: str = field(
        default="sample:test",
        metadata={
            "help": "Exchanges with levels and rationales: a file, a folder, sample[:split], or a "
            "hub id."
        },
    )
    split: str = borrowed(TableSettings, "split")
    stock: str = field(
        default="",
        metadata={
            "help": "Text file of stock sentences, one per line, # for comments; '': the list in "
            "rewards/audit/stock.txt."
        },
    )
    rewrites: str = field(
        default="",
        metadata={
            "help": "File (.jsonl) of `rewriting rewrite`: audit its new sentences under their own "
            "and another post; data, split, stock, limit and html are ignored."
        },
    )
    rewards: str = field(
        default=PARTNER_REWARDS,
        metadata={
            "help": "Reward terms and weights to audit, as YAML; by default those of train.py "
            "partner."
        },
    )
    limit: int = field(
        default=0,
        metadata={
            "help": "Maximum number of posts to audit, starting from the first with a suitable "
            "sentence; 0: all."
        },
    )
    seed: int = field(
        default=0,
        metadata={
            "help": "Seed for drawing other posts' sentences, and the posts that --html shows."
        },
    )
    json: str = borrowed(TableSettings, "json")
    html: str = borrowed(TableSettings, "html")
    overwrite: bool = borrowed(TableSettings, "overwrite")


def run(config: Config) -> dict[str, Any]:
    """Score every sentence in every reply; prints tables, writes JSON and the report."""
    from rewards.audit.audit import rounds_of, score_rounds, stock_carriers
    from rewards.audit.stock import NONSENSE, STOCK, read_sentences
    from rewards.audit.wins import figures
    from rewards.named import Models, build_rewards, rewards_mapping, weights_of
    from rewriting.report.page import write_report
    from rewriting.runtime.files.disk import write_json
    from rewriting.runtime.progress import progress_bar

    may_write(config.json, config.overwrite)
    if not any(weights_of(config.rewards).values()):
        raise UserError(
            "every reward has the weight 0, so nothing is paid and nothing can win. Give one "
            "another weight; the others may stay at 0 and are measured too."
        )
    if config.rewrites:
        return run_rewrites(config)
    may_write(config.html, config.overwrite)
    stock, nonsense = read_sentences(config.stock or STOCK), read_sentences(NONSENSE)
    items = chosen_items(config)
    rounds = rounds_of(items, stock, nonsense, config.seed)
    rewards = build_rewards(config.rewards, Models())
    with progress_bar("scoring replies", len(rounds) * len(items)) as advance:
        audit = score_rounds(rewards, items, rounds, advance)
    if all(total is None for total in audit.one("matched").totals):
        raise UserError(
            f"the rewards apply to none of these {len(items)} posts: every term with a weight gave "
            "None."
        )
    found = figures(audit, stock_carriers(items, stock)) | {
        "rewards": rewards_mapping(config.rewards),
        "data": config.data,
        "split": config.split,
        "seed": config.seed,
    }
    show(config, found)
    if config.json:
        write_json(Path(config.json), found)
    if config.html:
        write_report(Path(config.html), page_of(config, audit, found))
    return found


def run_rewrites(config: Config) -> dict[str, Any]:
    """The audit of a file of rewrites."""
    from recipes.evaluate.audit.rewrites import audit_rewrites, read_rewrites, show_rewrites
    from rewards.named import Models, build_rewards, rewards_mapping
    from rewriting.runtime.files.disk import write_json

    path = Path(config.rewrites).expanduser()
    read_rewrites(path)  # what is wrong with it is said before models are loaded
    found = audit_rewrites(path, build_rewards(config.rewards, Models()), config.seed)
    found |= {"rewards": rewards_mapping(config.rewards), "seed": config.seed}
    show_rewrites(found, config.rewrites)
    if config.json:
        write_json(Path(config.json), found)
    return found


def chosen_items(config: Config) -> list[Item]:
    """What there is to audit, or an error that says what the data lacks."""
    from recipes.shared.sources import rows_of_split
    from rewards.audit.audit import audit_items

    if config.limit < 0:
        raise UserError(f"limit must be 0 or more, not {config.limit}.")
    rows = rows_of_split(config.data, config.split)
    where = f"{config.data} ({config.split})" if config.split != "all" else config.data
    if not any(row.labels for row in rows):
        raise UserError(
            f"{where} holds no labelled exchange. An audit needs levels and rationales: see "
            "docs/data.md for the columns, or try --data sample:test."
        )
    items = audit_items(rows)
    if not items:
        raise UserError(
            f"none of the {len(rows)} rows of {where} has a sentence of 3 to 40 words that a "
            "rationale of a mechanism above level 0 covers by half."
        )
    return items[: config.limit or None]


def show(config: Config, found: Mapping[str, Any]) -> None:
    """The tables: the headline, then by sentence, then by term; and what is stock itself."""
    show_headline(config, found)
    show_sentences(found)
    show_terms(found)
    own = found["carriers_that_are_stock"]
    if own["n"]:
        shown = " · ".join(own["sentences"][:SHOWN_CARRIERS])
        more = " · …" if own["n"] > SHOWN_CARRIERS else ""
        print(f"{own['n']} of {found['n']} real sentences are stock themselves: {shown}{more}")


def show_headline(config: Config, found: Mapping[str, Any]) -> None:
    main = "matched_beats_every_stock"
    groups = {name.replace("_", " "): one for name, one in found["mechanisms"].items()}
    groups["stock itself"] = found["carriers_that_are_stock"]
    rows = [
        [title, with_bounds(found[name], found["intervals"][name]), str(found["n"])]
        for name, title in HEADLINES.items()
    ]
    rows[1:1] = [
        [f"  where the real one is {name}", share(one[main]), str(one["n"])]
        for name, one in groups.items()
        if one["n"]
    ]
    title = f"{config.data}: how often the rewards pay the real sentence more than …"
    print_table(title, ["", "% (95 %)", "posts"], rows)


def show_sentences(found: Mapping[str, Any]) -> None:
    rows = [["the real sentence", "", number(found["total"]["matched"])]]
    for kind in ("stock", "nonsense"):
        for sentence, one in found[kind].items():
            wins = with_bounds(one["matched_wins"], found["intervals"][kind][sentence])
            rows.append([sentence, wins, number(one["total"])])
    title = "stock sentences, then nonsense: how often the real one is paid more; mean total"
    print_table(title, ["sentence", "% (95 %)", "total"], rows)


def show_terms(found: Mapping[str, Any]) -> None:
    rows = [
        [name, *(number(one[kind]) for kind in KINDS), share(one["wins_over_stock"])]
        for name, one in found["terms"].items()
    ]
    title = "reward terms: mean by kind of sentence; how often the term alone wins"
    print_table(title, ["term", *KINDS.values(), "beats stock, %"], rows)


def number(value: float | None) -> str:
    return "–" if value is None else f"{round(value, 3) + 0.0:.3f}"


def share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"


def with_bounds(value: float | None, interval: Sequence[float] | None) -> str:
    return f"{share(value)} ({interval[0]:.0f} … {interval[1]:.0f})" if interval else share(value)


def page_of(config: Config, audit: Audit, found: Mapping[str, Any]) -> str:
    """The report: the figures, and some posts drawn with the seed."""
    from rewriting.report.audit import render

    count = min(SHOWN_POSTS, len(audit.items))
    rows = sorted(random.Random(config.seed).sample(range(len(audit.items)), count))
    return render(
        "What the reward pays for",
        facts={
            "data": config.data + (f", {config.split} part" if config.split != "all" else ""),
            "posts": f"{len(audit.items):,}",
            "rewards": str(config.rewards),  # of a YAML file, a mapping
            "seed": str(config.seed),
        },
        figures=found,
        headlines=HEADLINES,
        kinds=KINDS,
        samples=[sample_of(audit, row) for row in rows],
    )


def sample_of(audit: Audit, row: int) -> dict[str, Any]:
    """One post, and what the rewards paid there for the sentences that tell most."""
    item = audit.items[row]
    shown = {
        "the real sentence": audit.of("matched")[0],
        "the best paid stock sentence": best_paid(audit.of("stock"), row),
        "the real sentence of another post": audit.of("wrong_post")[0],
        "the real sentence of the most similar post": audit.of("similar_post")[0],
    }
    return {
        "id": item.exchange.id,
        "seeker_post": item.exchange.seeker_post,
        "before": str(item.rest),
        "mechanism": item.carrier.mechanism,
        "paid": [
            (title, one.sentences[row], scores.totals[row], scores.row(row))
            for title, (one, scores) in shown.items()
        ],
    }


def best_paid(rounds: Sequence[tuple[Round, Scores]], row: int) -> tuple[Round, Scores]:
    """The round whose sentence gets the highest total at one post."""

    def total(pair: tuple[Round, Scores]) -> float:
        paid = pair[1].totals[row]
        return -math.inf if paid is None else paid

    return max(rounds, key=total)
