"""The figures of a study for people: a table on the screen, one HTML file, a CSV."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rewriting.ab.results.analysis import TIES
from rewriting.ab.results.plots import Rate, win_plot
from rewriting.ab.study.study import Study, Vote
from rewriting.report.charts import Dot, dot_plot, share_plot
from rewriting.report.template import filled

HERE = Path(__file__).parent
TIES_TITLES: Final = {"ties_left_out": "Ties left out", "ties_split": "Ties split in halves"}
COLUMNS: Final = {
    "win_rate": ("win rate", "effective_votes"),
    "clustered": ("95 % interval", ""),
    "clustered_p_holm": ("p, Holm", "clustered_p"),
    "bootstrap": ("by bootstrap", ""),
    "wilson": ("Wilson", ""),
    "binomial_p_holm": ("binomial p, Holm", "binomial_p"),
}
"""The columns of the tables of tests: key → title, and what stands small below it.

What they mean is on the page and in the docs.
"""


def percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"


def percent_interval(interval: Sequence[float] | None, digits: int = 1) -> str:
    if interval is None:
        return "–"
    low, high = (f"{100 * bound:.{digits}f}" for bound in interval)
    return f"{low} … {high}"


def p_text(p: float | None) -> str:
    if p is None:
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def shown(name: str, figures: Mapping[str, Any]) -> str:
    """A figure of a comparison as a cell of a table: a percentage, an interval, a p-value."""
    value = figures[name]
    if name == "win_rate":
        return percent(value)
    if name == "effective_votes":
        return f"{figures['votes']} votes" + ("" if value is None else f", worth {value:.0f}")
    if name in ("clustered", "bootstrap", "wilson"):
        return percent_interval(value)
    return p_text(value) + ("" if name.endswith("_holm") or value is None else " alone")


def verdict(row: Mapping[str, Any]) -> str:
    """One sentence on a comparison."""
    figures = row["ties_left_out"]
    pair = f"{row['first']} and {row['second']}"
    if row["better"] is None:
        return f"{row['criterion']}: too few votes to compare {pair}."
    rate, interval = figures["win_rate"], figures["clustered"]
    if not row["better"]:
        sure = f"{percent(rate)} for {row['first']}, 95 % interval {percent_interval(interval)}"
        p = f"p = {p_text(figures['clustered_p_holm'])}"
        return f"{row['criterion']}: no difference shown between {pair} ({sure}, {p})."
    if row["better"] == row["second"]:
        rate, interval = 1 - rate, (1 - interval[1], 1 - interval[0])
    worse = row["first"] if row["better"] == row["second"] else row["second"]
    p = p_text(figures["clustered_p_holm"])
    return (
        f"{row['criterion']}: raters prefer {row['better']} to {worse} in {percent(rate)} of the "
        f"decided votes (95 % interval {percent_interval(interval)}, "
        f"p {p if p.startswith('<') else '= ' + p})."
    )


def print_report(figures: Mapping[str, Any]) -> None:
    """The main figures as a table that fits into 80 columns for each pair, then sentences."""
    from rich.console import Console
    from rich.text import Text

    console, rows = Console(), figures["main"]["comparisons"]
    for first, second in dict.fromkeys((row["first"], row["second"]) for row in rows):
        own = [row for row in rows if (row["first"], row["second"]) == (first, second)]
        console.print(screen_table(f"{first} against {second}, in % of the votes", own))
    for line in (*map(verdict, rows), *notes(figures)):
        console.print(Text("• " + line), soft_wrap=True)


def screen_table(title: str, rows: Sequence[Mapping[str, Any]]) -> Any:
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left", box=SIMPLE, padding=(0, 1, 0, 0))
    table.add_column("criterion", overflow="fold")
    columns = ("ties", "won/tied/lost", "wins", "95 %", "p, Holm", "Wilson", "binomial p")
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        for ties, title in (("ties_left_out", "out"), ("ties_split", "split")):
            one, first = row[ties], ties == "ties_left_out"
            table.add_row(
                Text(row["criterion"] if first else ""),
                title,
                f"{row['wins']}/{row['ties']}/{row['losses']}" if first else "",
                percent(one["win_rate"]).removesuffix(" %"),
                percent_interval(one["clustered"], digits=0),
                p_text(one["clustered_p_holm"]),
                percent_interval(one["wilson"], digits=0),
                p_text(one["binomial_p"]),
            )
    return table


def notes(figures: Mapping[str, Any]) -> list[str]:
    """What else a reader of the table should know."""
    main, lines = figures["main"], []
    for row in main["comparisons"]:
        value = row["agreement"]["alpha"]
        if value is not None:
            low, high = row["agreement"]["interval"]
            pair = f" ({row['first']} : {row['second']})" if len(figures["systems"]) > 2 else ""
            text = f"Krippendorff's alpha {value:.2f} (95 % interval {low:.2f} … {high:.2f})"
            lines.append(f"{row['criterion']}{pair}: {text}".replace("-", "−"))
    for criterion, one in main["position"].items():
        if one["share"] is not None:
            text = f"{criterion}: reply A won {percent(one['share'])} of the decided votes"
            lines.append(f"{text} (binomial p {p_text(one['binomial_p'])})")
    for criterion, one in main["consistency"].items():
        if one["share"] is not None:
            same = percent(one["share"])
            lines.append(f"{criterion}: the same answer on repeated pairs in {same}")
    for criterion, strengths in main.get("bradley_terry", {}).items():
        if strengths:
            ranked = sorted(strengths.items(), key=lambda one: -one[1]["strength"])
            text = ", ".join(f"{name} {one['strength']:+.2f}" for name, one in ranked)
            lines.append(f"{criterion}: Bradley–Terry strengths {text}")
    if figures["excluded"]:
        reasons = {row["rater"]: " and ".join(row["excluded_because"]) for row in figures["raters"]}
        told = ", ".join(f"{rater} ({reasons[rater]})" for rater in figures["excluded"])
        lines.append(f"left out by the rule fixed in advance: rater {told}")
    if figures["harmful"]:
        lines.append(f"flagged as harmful: {len(figures['harmful'])} pairs")
    return lines


def csv_rows(figures: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """A flat row per set of raters, comparison and treatment of ties."""
    for raters in ("main", "all_raters"):
        for row in figures[raters]["comparisons"]:
            keys = ("first", "second", "criterion", "raters", "items", "wins", "ties", "losses")
            fixed = {"set": raters} | {key: row[key] for key in keys}
            fixed |= {"alpha": row["agreement"]["alpha"], "better": row["better"]}
            for ties in TIES:
                flat: dict[str, Any] = {}
                for name, value in row[ties].items():
                    if name in ("wilson", "clustered", "bootstrap"):
                        low, high = value or (None, None)
                        flat |= {f"{name}_low": low, f"{name}_high": high}
                    else:
                        flat[name] = value
                yield fixed | {"treatment": ties} | flat


def render(study: Study, figures: Mapping[str, Any], votes: Sequence[Vote]) -> str:
    """The page: one self-contained file without a script."""
    from rewriting.safety import scrub

    main = figures["main"]
    comments = [vote for vote in votes if vote.harmful and vote.comment]
    return filled(
        "report.html",
        HERE,
        filters={"percent": percent, "interval": percent_interval, "p": p_text},
        title=figures["title"],
        figures=figures,
        facts=facts(figures),
        verdicts=[verdict(row) for row in main["comparisons"]],
        plots=plots(figures),
        ties_titles=TIES_TITLES,
        columns=COLUMNS,
        shown=shown,
        sets={"main": main}
        | ({"all_raters": figures["all_raters"]} if figures["excluded"] else {}),
        flagged=[
            {
                "row": row,
                "seeker_post": scrub(study.items[row["item"]].seeker_post),
                "replies": {k: scrub(v) for k, v in study.items[row["item"]].replies.items()},
                "comments": sorted(
                    {scrub(vote.comment) for vote in comments if vote.item == row["item"]}
                ),
            }
            for row in figures["harmful"]
        ],
    )


def facts(figures: Mapping[str, Any]) -> dict[str, str]:
    main, all_raters = figures["main"], figures["all_raters"]
    excluded = len(figures["excluded"])
    return {
        "systems": ", ".join(figures["systems"]),
        "raters": f"{main['raters']}" + (f" of {all_raters['raters']}" if excluded else ""),
        "pairs judged": f"{main['items']} of {figures['planned']['items']}",
        "votes": f"{main['votes']:,}",
        "votes per pair, planned": f"{figures['planned']['votes_per_item']}",
        "data": figures["data_hash"][:16] or "–",
    }


def plots(figures: Mapping[str, Any]) -> list[tuple[str, str, Any]]:
    """Title, hint and drawing: win rates and shares for each pair of systems, and strengths."""
    found = []
    everybody = {_key(row): row for row in figures["all_raters"]["comparisons"]}
    pairs = dict.fromkeys((r["first"], r["second"]) for r in figures["main"]["comparisons"])
    for first, second in pairs:
        own = [
            r
            for r in figures["main"]["comparisons"]
            if (r["first"], r["second"]) == (first, second)
        ]
        rates = []
        for row in own:
            rates.append(_rate(row["criterion"], row))
            if figures["excluded"]:
                rates.append(_rate("… all raters", everybody[_key(row)], muted=True))
        title = f"Win rate of {first} over {second}"
        found.append((title, "% of decided votes, 95 % intervals", win_plot(rates, title)))
        shares = []
        for row in own:
            total = row["wins"] + row["ties"] + row["losses"]
            if total:
                counts = (row["wins"], row["ties"], row["losses"])
                shares.append((row["criterion"], [100 * count / total for count in counts]))
        title = f"Votes for {first}, ties, votes for {second}"
        found.append((title, "in %", share_plot(shares, title)))
    for criterion, strengths in figures["main"].get("bradley_terry", {}).items():
        if strengths:
            dots = [
                Dot(name, one["strength"], one["interval"], f"{one['strength']:+.2f}")
                for name, one in strengths.items()
            ]
            title = f"Strength: {criterion}"
            found.append((title, "log odds against the average system", dot_plot(dots, title)))
    return found


def _key(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["first"], row["second"], row["criterion"]


def _rate(label: str, row: Mapping[str, Any], *, muted: bool = False) -> Rate:
    figures = row["ties_left_out"]
    rate, interval = figures["win_rate"], figures["clustered"]
    return Rate(
        label,
        None if rate is None else 100 * rate,
        None if interval is None else [100 * bound for bound in interval],
        muted,
    )
