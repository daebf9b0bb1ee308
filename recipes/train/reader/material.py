"""What `train.py reader` learns from: answers, decoys, calm posts, and dialogues if given."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from rewriting.errors import UserError

if TYPE_CHECKING:
    from recipes.train.reader.recipe import Config
    from rewards.reading.blocks import Material
    from rewriting.data import Split
    from rewriting.exchange import Exchange


def labelled_splits(config: Config) -> dict[Split, list[Exchange]]:
    """Exchanges with all three levels, without replies that are known not to fit their post."""
    from recipes.shared.sources import known_levels, load_splits

    return {split: known_levels(rows) for split, rows in load_splits(config.data).items()}


def counterfactuals(config: Config, split: str) -> list[Exchange]:
    from rewriting.data import load_exchanges

    return list(load_exchanges(f"{config.counterfactuals}_{split}"))


def form_sentences(config: Config, labelled: list[Exchange]) -> list[Any]:
    """Sentences with the levels of their form; those of the counterfactuals count three times."""
    from rewards.reading.blocks import KIND_LEVELS, labelled_answers, sentences_by_kind

    real = [(one.sentence, one.levels, 1.0) for one in labelled_answers(labelled)]
    ours = [
        (text, KIND_LEVELS[kind], 3.0)
        for exchange in counterfactuals(config, "train")
        for kind, text in sentences_by_kind(exchange).items()
        if kind in KIND_LEVELS
    ]
    return [*real, *ours]


def worth_sentences(config: Config, labelled: list[Exchange]) -> tuple[list[str], list[Any]]:
    """Strong sentences that people said, stock ones left out; and decoys in groups, with the share
    of each group."""
    from rewards.audit.stock import is_stock
    from rewards.identifiers.seed_sentences import SEEDS
    from rewards.reading.blocks import STRONG, labelled_answers, plain_answers, sentences_by_kind

    rows = [sentences_by_kind(exchange) for exchange in counterfactuals(config, "train")]
    seeds = [seed for group in SEEDS.values() for seed in group]
    strong = [one.sentence for one in labelled_answers(labelled) if max(one.levels or (0,)) == 2]
    real = [sentence for sentence in strong if not is_stock(sentence, seeds)]
    answers = real + [row[kind] for row in rows for kind in STRONG]
    weak = [text for row in rows for kind, text in row.items() if kind.endswith("_weak")]
    everyday = [one.sentence for one in plain_answers(calm_exchanges(config))]
    return answers, [
        (0.5, weak),
        (0.05, seeds),
        (0.2, [row["nonsense"] for row in rows]),
        (0.1, [row[kind] for row in rows for kind in ("hurtful", "advice")]),
        (0.15, everyday),
    ]


def material_of(config: Config, splits: dict[Split, list[Exchange]], split: Any) -> Material:
    """The sentences and posts of a split from which training blocks are drawn."""
    from rewards.identifiers.seed_sentences import SEEDS
    from rewards.reading import blocks
    from rewriting.data import split_of

    ours = counterfactuals(config, split)
    answers = blocks.labelled_answers(splits[split])
    carrying = [one for one in answers if one.levels and max(one.levels)]
    sources = [(0.45, carrying), (0.15, answers), (0.4, blocks.counterfactual_answers(ours))]
    if config.dialogues:
        plain = dialogue_answers(config, split)
        sources = [(0.35, carrying), (0.1, answers), (0.25, sources[2][1]), (0.3, plain)]
    empty = [share for share, rows in sources if not rows]
    if empty:
        raise UserError(f"{config.data}: too little data for the {split} part.")
    seeds = dict(
        zip(("reaction_weak", "interpretation_weak", "question_weak"), SEEDS.values(), strict=True)
    )
    chosen = [e for e in calm_exchanges(config) if (split_of(e) == "dev") == (split == "dev")]
    return blocks.Material(
        sources,
        blocks.decoys_of(ours, seeds),
        [one.sentence for one in blocks.plain_answers(chosen)],
        [exchange.seeker_post for exchange in chosen],
    )


def calm_exchanges(config: Config) -> list[Exchange]:
    from recipes.shared.sources import sources_of
    from rewriting.data import load_exchanges

    return [e for source in sources_of(config.calm) for e in load_exchanges(source)]


def calm_posts(config: Config) -> list[str]:
    """Posts that call for no empathy: the calm sources, and pleasant dialogues."""
    from rewards.identifiers.in_context.training import PLEASANT

    return [e.seeker_post for e in calm_exchanges(config)] + first_turns(config, PLEASANT, 1500)


def painful_posts(config: Config) -> list[str]:
    """Posts of the counterfactuals, and of painful dialogues."""
    from rewards.identifiers.in_context.training import PAINFUL

    ours = [e.seeker_post for e in counterfactuals(config, "train")]
    return ours + first_turns(config, PAINFUL, 800)


def first_turns(config: Config, emotions: Collection[str], most: int) -> list[str]:
    """At most so many first turns of the dialogues that tell of one of these emotions."""
    from recipes.shared.sources import drawn, load_splits

    if not config.dialogues:
        return []
    rows = [
        e.seeker_post
        for e in load_splits(config.dialogues)["train"]
        if e.extra.get("emotion") in emotions and not e.history
    ]
    return drawn(list(dict.fromkeys(rows)), most, config.seed)


def dialogue_answers(config: Config, split: str) -> list[Any]:
    """Sentences of unlabelled exchanges about painful experiences, where the source says so."""
    from recipes.shared.sources import drawn, load_splits
    from rewards.identifiers.in_context.training import PAINFUL
    from rewards.reading.blocks import plain_answers

    found = []
    rows = load_splits(config.dialogues)[split]  # type: ignore[index]
    rows = [e for e in rows if e.extra.get("emotion") in (None, *PAINFUL)]
    for exchange in drawn(rows, config.max_dialogues, config.seed):
        found += plain_answers([exchange])
    return found


def smallest(material: Material) -> int:
    """How many different posts the smallest source has: no block can be larger."""
    return min(len({answer.post for answer in answers}) for _, answers in material.sources)
