"""The page of `rewriting insights`: findings and plots in, one self-contained HTML file out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rewriting.insights.findings import Finding, Point, Series
from rewriting.report.charts import Dot, dot_plot, share_plot
from rewriting.report.template import filled


def render(
    title: str,
    *,
    facts: Mapping[str, str],
    levels: Mapping[str, Sequence[float]],
    found: Sequence[Finding],
    plotted: Mapping[str, Series],
) -> str:
    """The page. levels: mechanism → percent of replies at strong, weak and none."""
    return filled(
        "insights.html",
        title=title,
        facts=facts,
        levels=share_plot([(words(n), shares) for n, shares in levels.items()], "levels"),
        standing=[row(one) for one in found if one.stands],
        others=[row(one) for one in found if not one.stands],
        plots={question: plots(question, shown) for question, shown in plotted.items()},
    )


def words(name: str) -> str:
    return name.replace("_", " ")


def row(one: Finding) -> dict[str, str]:
    """A finding as the cells of a table."""
    found = one.slope
    return {
        "question": one.question,
        "measure": words(one.measure),
        "estimate": signed(found.estimate),
        "interval": f"{signed(found.low)} to {signed(found.high)}",
        "unit": one.unit,
        "p": f"{one.adjusted_p:.3f}" if one.adjusted_p >= 0.001 else "< 0.001",
        "rows": f"{found.rows:,}",
    }


def signed(value: float) -> str:
    return f"{value:+.3f}".replace("-", "−")


def interval(point: Point) -> tuple[float, float] | None:
    return None if point.low is None or point.high is None else (point.low, point.high)


def plots(question: str, shown: Series) -> list[tuple[str, object]]:
    """A dot plot for every measure of a question."""
    return [
        (
            words(measure),
            dot_plot(
                [
                    Dot(point.label, point.value, interval(point), f"{point.value:.2f}")
                    for point in points
                ],
                f"{words(measure)} {question}",
            ),
        )
        for measure, points in shown.items()
        if points
    ]
