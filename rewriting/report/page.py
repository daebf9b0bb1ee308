"""The page: figures, curves and rewrites in, one self-contained HTML file out.

It loads nothing, runs one script of its own (the filters; without it all rewrites are shown), and
says so in a content security policy. Posts are other people's text: the template escapes them.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup

from rewriting.exchange import MECHANISMS
from rewriting.measures.diversity import removed_sentences
from rewriting.measures.measure import Measure
from rewriting.measures.rewrites import INITIAL, initial_group, measure_of
from rewriting.report.charts import Dot, dot_plot, line_plot, share_plot
from rewriting.report.curves import Curve
from rewriting.report.differences import compared, difference_table, verdicts
from rewriting.report.marks import Piece, pieces
from rewriting.report.template import HERE, filled
from rewriting.runtime.files.disk import disk_errors
from rewriting.sentences import split_sentences

ORIGINAL = "original"
ARROWS: Final = {"higher": "↑", "lower": "↓", "": ""}
OUTCOMES: Final = ("more empathy", "the same", "less")


@dataclass(frozen=True, slots=True)
class Version:
    """A response, the original or a rewrite, and what an identifier says of it.

    levels and rationales are by mechanism; rationales are parts of the text, word for word.
    """

    system: str
    text: str
    levels: Mapping[str, int] = field(default_factory=dict)
    rationales: Mapping[str, Sequence[str]] = field(default_factory=dict)
    rewards: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def empathy(self) -> int:
        return sum(self.levels.values())


@dataclass(frozen=True, slots=True)
class Sample:
    """A seeker post, the original response, and what the systems made of it."""

    id: str
    seeker_post: str
    original: Version
    rewrites: Sequence[Version]


def write_report(path: Path, page: str) -> None:
    """Write the page by way of a temporary file beside it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(page, encoding="utf-8")
        temporary.replace(path)


def render(
    title: str,
    *,
    facts: Mapping[str, str],
    figures: Mapping[str, Mapping[str, Any]],
    samples: Sequence[Sample] = (),
    curves: Sequence[Curve] = (),
) -> str:
    """The page.

    facts: what a reader should know of the run, name → text. figures: system → what
    `evaluate.py rewrites` writes as JSON. curves: of a training, from `read_log`.
    """
    script = (HERE / "filters.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    names = {name: short_name(name) for name in figures}
    against, others = compared(figures)
    return filled(
        "page.html",
        title=title,
        facts=facts,
        names=names,
        table=table(figures),
        by_initial=by_initial(figures),
        against=names.get(against, against),
        compared=[names[name] for name in others],
        differences=difference_table(others),
        verdicts=verdicts(others),
        plots=plots(figures, names),
        repeated={names[n]: one["most_repeated"] for n, one in figures.items()},
        measures=measures_of(figures),
        arrows=ARROWS,
        mechanisms={name: name.replace("_", " ") for name in MECHANISMS},
        curves=[(curve, line_plot(curve, f"{curve.name} over the steps")) for curve in curves],
        samples=[card(sample, names) for sample in samples],
        systems=sorted({one.system for sample in samples for one in sample.rewrites}),
        initial=INITIAL,
        script=script,
        script_digest=digest,
    )


def short_name(system: str) -> str:
    """A system's name for headings: of a path, its last two parts."""
    return "/".join(Path(system).parts[-2:]) if "/" in system else system


def measures_of(figures: Mapping[str, Mapping[str, Any]]) -> dict[str, Measure[Any]]:
    """The measures of the table: the known ones, then reward terms that were asked for."""
    first = next(iter(figures.values()))
    plain = (
        name for name, value in first.items() if value is None or isinstance(value, int | float)
    )
    return {name: measure_of(name) for name in plain}


def table(figures: Mapping[str, Mapping[str, Any]]) -> dict[str, list[tuple[str, str]]]:
    """Measure → for each system the value and its interval."""
    return {
        name: [
            (measure.shown(one[name]), measure.shown_interval(one["intervals"].get(name)))
            for one in figures.values()
        ]
        for name, measure in measures_of(figures).items()
    }


def by_initial(figures: Mapping[str, Mapping[str, Any]]) -> dict[str, list[tuple[str, str]]]:
    """Group of originals → for each system the change in empathy and its interval."""
    key, change = "empathy_change_by_initial", measure_of("empathy_change")
    return {
        group: [
            (
                change.shown(one[key][group]),
                change.shown_interval(one["intervals"][key][group]),
            )
            for one in figures.values()
        ]
        for group in INITIAL
    }


def plots(
    figures: Mapping[str, Mapping[str, Any]], names: Mapping[str, str]
) -> list[tuple[str, str, Markup]]:
    """Title, hint and drawing of each plot; those without a value are left out."""
    rewriters = {n: one for n, one in figures.items() if n != ORIGINAL} or figures
    found = [
        ("Change in empathy", "with 95 % intervals", _dots("empathy_change", rewriters, names)),
        ("Change by how empathic the original was", "", _initial_dots(rewriters, names)),
        ("What became of the replies, in %", _swatches(), _shares(rewriters, names)),
    ]
    for name, measure in measures_of(figures).items():
        if not measure.plotted:
            continue
        hint = f"{ARROWS[measure.better]} {measure.better} is better" if measure.better else ""
        drawing = _dots(name, figures, names)
        found.append((measure.title.capitalize(), hint, drawing))
    return [plot for plot in found if plot[2]]


def _dots(name: str, figures: Mapping[str, Any], names: Mapping[str, str]) -> Markup:
    rows = [
        Dot(
            names[system],
            one[name],
            one["intervals"].get(name),
            measure_of(name).shown(one[name]),
            muted=system == ORIGINAL,
        )
        for system, one in figures.items()
    ]
    return dot_plot(rows, f"{measure_of(name).title} by system")


def _initial_dots(figures: Mapping[str, Any], names: Mapping[str, str]) -> Markup:
    key = "empathy_change_by_initial"
    rows = []
    for group, title in INITIAL.items():
        count = next(iter(figures.values()))["n_by_initial"][group]
        if not count:
            continue
        rows.append(Dot(f"{title}, n = {count}"))
        rows += [
            Dot(
                names[system],
                one[key][group],
                one["intervals"][key][group],
                measure_of("empathy_change").shown(one[key][group]),
            )
            for system, one in figures.items()
        ]
    return dot_plot(rows, "change in empathy by empathy of the original")


def _shares(figures: Mapping[str, Any], names: Mapping[str, str]) -> Markup:
    rows = [
        (
            names[system],
            (one["improved"], 100 - one["improved"] - one["worsened"], one["worsened"]),
        )
        for system, one in figures.items()
    ]
    return share_plot(rows, f"per cent with {', '.join(OUTCOMES)}")


def _swatches() -> Markup:
    """The colours of the shares and what they stand for."""
    one = Markup('<span class="swatch swatch{}"><i></i>{}</span> ')
    inside = Markup("").join(one.format(*pair) for pair in enumerate(OUTCOMES))
    return Markup('<span class="swatches">{}</span>').format(inside)


@dataclass(frozen=True, slots=True)
class Block:
    """A version as the page shows it: in marked pieces, with what was taken out."""

    version: Version
    name: str
    runs: list[list[Piece]]
    values: list[tuple[str, str]]
    removed: list[str]
    anew: bool
    change: int

    @property
    def direction(self) -> str:
        return "up" if self.change > 0 else "down" if self.change < 0 else "same"


def card(sample: Sample, names: Mapping[str, str]) -> dict[str, Any]:
    """One exchange with all its rewrites, as the template of the page needs it."""
    before = sample.original
    return {
        "id": sample.id,
        "seeker_post": sample.seeker_post,
        "original": before,
        "runs": pieces(before.text, rationales=before.rationales),
        "group": initial_group(before.empathy),
        "blocks": [_block(one, before, names) for one in sample.rewrites],
    }


def _block(version: Version, before: Version, names: Mapping[str, str]) -> Block:
    removed = removed_sentences(before.text, version.text)
    return Block(
        version,
        names.get(version.system, short_name(version.system)),
        pieces(version.text, original=before.text, rationales=version.rationales),
        [(measure_of(n).title, measure_of(n).shown(value)) for n, value in version.rewards.items()],
        removed,
        # One sentence replaced by one is an edit; more than that is another text.
        anew=len(removed) == len(split_sentences(before.text)) > 1,
        change=version.empathy - before.empathy,
    )
