"""What `train.py crisis` chooses and measures after training: temperature, bars, and how much the
whole gate, rules and reader together, finds in each register, with Wilson's intervals.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from recipes.shared.cards import command
from recipes.train.crisis.messages import Message
from rewriting.errors import UserError

if TYPE_CHECKING:
    from recipes.train.crisis.recipe import Config
    from rewriting.safety.reader.crisis_reader import Bars, CrisisReader

HINTED = (1.0, 0.5, 0.4, 0.3, 0.2)  # bars of messages with a hint that are tried
HINTED_TWICE = (1.0, 0.2, 0.1, 0.05)
CRISIS_ALARMS = 0.01  # share of benign dev messages that the bar `crisis` may hold back
CRISIS_ORDINARY = 0.002  # the same share of ordinary posts


def fit_temperature(reader: CrisisReader, rows: Sequence[Message]) -> float:
    """The temperature with the least log loss (Guo et al. 2017, arXiv 1706.04599).

    reader: with temperature 1.
    """
    found = [reader.read(row.text).probability for row in rows]
    logits = [math.log(p / (1 - p)) for p in (min(max(p, 1e-6), 1 - 1e-6) for p in found)]
    pairs = list(zip(logits, (row.crisis for row in rows), strict=True))

    def log_loss(temperature: float) -> float:
        return sum(math.log1p(math.exp((-z if crisis else z) / temperature)) for z, crisis in pairs)

    return min((step / 20 for step in range(10, 81)), key=log_loss)


@dataclass(frozen=True, slots=True)
class Judged:
    """A message, and what rules and reader say of it."""

    message: Message
    probability: float
    firm: bool
    """Whether the rules raise an alarm that no reader takes back."""
    weak: bool
    """Whether they found weak phrases alone."""
    hints: int = 0
    """How many different hints they found."""

    def alarms(self, bars: Bars) -> bool:
        """Whether the gate would hold the message back with these bars."""
        return self.firm or self.probability >= min(bars.possible, self.lower(bars))

    def lower(self, bars: Bars) -> float:
        """The bar that weak phrases and hints set for the message; infinite where it has none."""
        benign = bars.benign if self.weak else math.inf
        hinted = replace(bars, possible=math.inf).possible_with(self.hints)
        return min(benign, hinted)


def judge(reader: CrisisReader, row: Message) -> Judged:
    from rewriting.safety.gate import SURE_WORDS
    from rewriting.safety.rules.check import ruled

    found = ruled(row.text)
    sure = len(row.text.split()) >= SURE_WORDS
    firm = found.firm.alarming or (found.weak.alarming and not sure)
    weak = found.weak.alarming and not firm
    return Judged(row, reader.read(row.text).probability, firm, weak, len(found.hints))


def choose_bars(
    reader: CrisisReader,
    dev: Sequence[Message],
    ordinary: Sequence[Message],
    false_alarms: float,
    ordinary_alarms: float,
) -> Bars:
    """The bars with which the whole gate finds most dev crises, where it may hold back so many
    benign dev messages and posts of seekers (`false_alarms`) and ordinary posts.

    Alarms that the rules raise whatever the reader says count, but do not make it impossible.
    """
    from rewriting.safety.reader.crisis_reader import Bars

    crises = [judge(reader, row) for row in dev if row.crisis]
    groups = [
        ([judge(reader, row) for row in dev if not row.crisis], false_alarms, CRISIS_ALARMS),
        (_of(reader, ordinary, "seeker"), false_alarms, CRISIS_ALARMS),
        (_of(reader, ordinary, "ordinary"), ordinary_alarms, CRISIS_ORDINARY),
    ]
    if not groups[0][0] or not crises:
        raise UserError(
            "the bars are chosen on dev messages of both labels, crisis and benign, and one of the "
            "labels is missing."
        )
    crisis = max(
        bar_above([one.probability for one in rows], int(share * len(rows)))
        for rows, _, share in groups
    )
    weak = (one.probability for rows, _, _ in groups for one in rows if one.weak)
    benign_bars = {0.0, 1.0, *(min(probability + 1e-6, 1.0) for probability in weak)}
    hint_bars = [(one, two) for one in HINTED for two in HINTED_TWICE if two <= one]
    choices = []
    for benign, (hinted, twice) in itertools.product(sorted(benign_bars), hint_bars):
        bars = Bars(math.inf, crisis, benign, hinted, twice)
        possible = max(lowest_possible(rows, share, bars) for rows, share, _ in groups)
        if possible < math.inf:
            choices.append(replace(bars, possible=possible, crisis=max(possible, crisis)))

    def worth(bars: Bars) -> tuple[float, ...]:
        found = sum(one.alarms(bars) for one in crises)
        return -found, bars.possible, bars.benign, -bars.hinted, -bars.hinted_twice

    best = min(choices, key=worth)
    return replace(best, benign=min(best.benign, best.possible))


def _of(reader: CrisisReader, rows: Sequence[Message], register: str) -> list[Judged]:
    return [judge(reader, row) for row in rows if row.register == register]


def lowest_possible(rows: Sequence[Judged], share: float, bars: Bars) -> float:
    """The lowest bar `possible` with which no more than a share of the messages is held back.

    bars: those of weak phrases and hints. Infinite where these alone hold back too many.
    """
    firm = sum(one.firm for one in rows)
    open_rows = [one for one in rows if not one.firm]
    over = [one.probability >= one.lower(bars) for one in open_rows]
    left = max(int(share * len(rows)), firm) - firm - sum(over)
    others = [one.probability for one, held in zip(open_rows, over, strict=True) if not held]
    return bar_above(others, left) if left >= 0 else math.inf


def bar_above(probabilities: Sequence[float], allowed: int) -> float:
    """The lowest bar that no more than so many of the probabilities reach."""
    ordered = sorted(probabilities, reverse=True)
    return min(ordered[allowed] + 1e-6, 1.0) if allowed < len(ordered) else 0.0


def measure(
    reader: CrisisReader, rows: Sequence[Message], ordinary: Sequence[Message] = ()
) -> dict[str, Any]:
    """How the gate with this reader judges messages, by register or language, and the reader alone.

    `found` counts what is possible or a crisis, `unchecked` what is in a language it cannot read.
    """
    from sklearn.metrics import roc_auc_score

    from rewriting.safety.gate import Gate

    gate = Gate(reader=reader)
    groups: dict[str, dict[str, list[Message]]] = {"crisis": {}, "benign": {}}
    for row in (*rows, *ordinary):
        name = row.register if row.language == "en" else row.language
        groups["crisis" if row.crisis else "benign"].setdefault(name, []).append(row)
    alone = [reader.read(row.text) for row in rows]
    named = [(row.kind, reading.kind) for row, reading in zip(rows, alone, strict=True) if row.kind]
    over = [reading.probability >= reader.bars.possible for reading in alone]
    figures: dict[str, Any] = {
        "auroc": 100
        * float(roc_auc_score([row.crisis for row in rows], [one.probability for one in alone])),
        "kind_accuracy": 100 * sum(a == b for a, b in named) / len(named) if named else None,
        "n": len(rows),
    }
    for label, by_register in groups.items():
        figures[label] = {name: counted(gate, own) for name, own in sorted(by_register.items())}
        everyone = [row for row in rows if row.crisis == (label == "crisis")]
        figures[f"all_{label}"] = counted(gate, everyone)
        reader_alone = sum(hit for row, hit in zip(rows, over, strict=True) if row in everyone)
        figures[f"all_{label}"]["reader_alone"] = reader_alone
    return figures


def counted(gate: Any, rows: Sequence[Message]) -> dict[str, Any]:
    """How many messages are found, called a crisis and unchecked, with an interval in percent."""
    from rewriting.statistics.shares import wilson

    levels = [gate.check_post(row.text).verdict for row in rows]
    found = sum(level in ("possible", "crisis") for level in levels)
    low, high = wilson(found, len(rows)) or (0.0, 1.0)
    return {
        "n": len(rows),
        "found": found,
        "crisis": levels.count("crisis"),
        "unchecked": levels.count("unchecked"),
        "low": 100 * low,
        "high": 100 * high,
    }


def table(part: dict[str, Any]) -> str:
    """A table of Markdown: what was found in each register."""
    lines = ["| register | found | 95 % interval |", "|---|---:|---:|"]
    for label in ("crisis", "benign"):
        for name, one in part[label].items():
            shown = f"{one['found']} of {one['n']}"
            lines.append(f"| {label}: {name} | {shown} | {one['low']:.0f} to {one['high']:.0f} % |")
    return "\n".join(lines)


def card(config: Config, figures: dict[str, Any]) -> str:
    dev, bars = figures["dev"], figures["bars"]
    test = figures.get("test")
    return CARD.format(
        encoder=config.encoder,
        layers=f", its first {config.layers} layers," if config.layers else "",
        rank=config.rank,
        messages=figures["messages"],
        command=command("crisis", config),
        possible=bars["possible"],
        crisis=bars["crisis"],
        temperature=figures["temperature"],
        auroc=dev["auroc"],
        dev=table(dev),
        test=f"\n## On the test part\n{table(test)}\n" if test else "",
    )


CARD = """# crisis: does this post read like a crisis, and like which kind?

`{encoder}`{layers} with LoRA of rank {rank} and two linear heads, which the safety gate asks beside
its rules: possible from a probability of {possible:.3f} on, a crisis from {crisis:.3f} on.

- Trained on {messages:,} messages of our own: the crisis corpus (rewriting/sample/CRISIS.md),
  bundled ordinary posts, and noisy copies of both. Temperature {temperature:.2f}, fitted on dev.
- Command: `{command}`

## On the dev part (another writer, on whom step, temperature and bars were chosen)
AUROC of the reader alone {auroc:.1f}. Found by the gate, rules and reader together, as possible or
crisis; of benign messages these are false alarms.

{dev}
{test}
## Limits
Written by a language model, for a corpus in which every third message is a crisis; real posts are
longer and crises rarer. English only. Not validated for clinical use: a clear verdict does not mean
that somebody is safe.
"""
