"""What `train.py crisis` chooses and measures after training: temperature, bars, and how much the
whole gate, rules and reader together, finds in each register, with Wilson's intervals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from recipes.cards import command
from recipes.crisis_messages import Message
from rewriting.errors import UserError

if TYPE_CHECKING:
    from recipes.crisis import Config
    from rewriting.safety.reader import Bars, CrisisReader

QUANTILE = 1.959964  # of a 95 % interval
CRISIS_ALARMS = 0.01  # share of benign dev messages that the bar `crisis` may hold back
CRISIS_ORDINARY = 0.002  # the same share of ordinary posts
MISSED = 0.05  # share of dev crises that may lie below the bar `benign`


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


def choose_bars(
    reader: CrisisReader,
    dev: Sequence[Message],
    ordinary: Sequence[Message],
    false_alarms: float,
    ordinary_alarms: float,
) -> Bars:
    """The lowest bars that hold back no more benign messages than allowed: recall first."""
    from rewriting.safety.reader import Bars

    benign = [reader.read(row.text).probability for row in dev if not row.crisis]
    crises = sorted(reader.read(row.text).probability for row in dev if row.crisis)
    if not benign or not crises:
        raise UserError("the bars are chosen on dev messages of both labels, and one is missing.")
    possible = bar_above(benign, false_alarms)
    crisis = bar_above(benign, CRISIS_ALARMS)
    if ordinary:
        everyday = [reader.read(row.text).probability for row in ordinary]
        possible = max(possible, bar_above(everyday, ordinary_alarms))
        crisis = max(crisis, bar_above(everyday, CRISIS_ORDINARY))
    crisis = max(possible, crisis)
    return Bars(possible, crisis, min(possible, crises[int(MISSED * len(crises))]))


def bar_above(probabilities: Sequence[float], share: float) -> float:
    """The lowest bar that no more than this share of the probabilities reaches."""
    ordered = sorted(probabilities)
    allowed = min(int(share * len(ordered)), len(ordered) - 1)
    return min(ordered[len(ordered) - 1 - allowed] + 1e-6, 1.0)


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
    levels = [gate.check_post(row.text).verdict for row in rows]
    found = sum(level in ("possible", "crisis") for level in levels)
    low, high = wilson(found, len(rows))
    return {
        "n": len(rows),
        "found": found,
        "crisis": levels.count("crisis"),
        "unchecked": levels.count("unchecked"),
        "low": 100 * low,
        "high": 100 * high,
    }


def wilson(found: int, n: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927)."""
    if not n:
        return 0.0, 1.0
    share, extra = found / n, QUANTILE**2 / n
    middle = (share + extra / 2) / (1 + extra)
    half = math.sqrt(extra * share * (1 - share) + extra**2 / 4) / (1 + extra)
    return max(0.0, middle - half), min(1.0, middle + half)


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
