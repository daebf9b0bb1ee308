"""The page and the table: complete, escaped, self-contained."""

import csv
import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rewriting.ab.results.analysis import analyse
from rewriting.ab.results.export import csv_text
from rewriting.ab.results.plots import Rate, win_plot
from rewriting.ab.results.report import COLUMNS, csv_rows, p_text, print_report, render, verdict
from rewriting.ab.study.study import Study, Vote
from tests.rewriting.ab.made_study import cast, made_study
from tests.rewriting.report.test_page import Elements

Made = tuple[Study, list[Vote], dict[str, Any]]


def rule(rater: int, place: int, criterion: str) -> str:
    if criterion == "fluent":
        return ("ours", "theirs", "tie")[(place + rater) % 3]
    return "theirs" if place == rater else "ours"


@pytest.fixture(scope="module")
def made() -> Made:
    study = replace(made_study(exchanges=12, raters=5), title="A <b>study</b>")
    votes = [
        replace(
            vote,
            seconds=1.0 if vote.rater == 5 else 9.0,
            harmful=vote.item == "item00301",
            comment="<script>alert(1)</script> me@example.org" if vote.item == "item00301" else "",
        )
        for vote in cast(study, rule)
    ]
    return study, votes, analyse(study, votes)


def test_the_page_is_self_contained_and_escaped(made: Made) -> None:
    study, votes, figures = made
    page = render(study, figures, votes)
    elements = Elements(page)
    assert not {"link", "img", "iframe", "object", "script"} & {name for name, _ in elements.found}
    assert all("src" not in given and "href" not in given for _, given in elements.found)
    assert "url(" not in page
    assert "A &lt;b&gt;study&lt;/b&gt;" in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; [mail]" in page
    assert "me@example.org" not in page
    assert [m["content"] for m in elements.of("meta") if "http-equiv" in m] == [
        "default-src 'none'; style-src 'unsafe-inline'"
    ]


def test_the_page_has_every_table(made: Made) -> None:
    study, votes, figures = made
    page = render(study, figures, votes)
    for title, _ in COLUMNS.values():
        assert f">{title}</th>" in page
    for heading in ("Ties left out, all raters", "Ties split in halves, without excluded raters"):
        assert heading in page
    assert "median 1.0 s a pair, below 3 s" in page
    assert page.count("<svg ") == 2
    assert "44 / 0 / 4" in page  # four kept raters, twelve pairs, one lost each


def test_without_excluded_raters_there_is_one_set_of_tables() -> None:
    study = made_study()
    votes = cast(study, rule)
    page = render(study, analyse(study, votes), votes)
    assert "all raters" not in page
    assert "Flagged as harmful" not in page


def test_three_systems_have_plots_for_every_pair_and_criterion() -> None:
    study = made_study(systems=("a", "b", "c"), exchanges=4, raters=3)
    votes = cast(study, lambda rater, place, criterion: "tie")
    page = render(study, analyse(study, votes), votes)
    assert page.count("<svg ") == 3 * 2 + 2  # rates and shares of each pair, strengths


def test_verdicts_name_the_better_system(made: Made) -> None:
    rows = {row["criterion"]: row for row in made[2]["main"]["comparisons"]}
    assert verdict(rows["empathic"]).startswith(
        "empathic: raters prefer ours to theirs in 91.7 % of the decided votes"
    )
    assert verdict(rows["fluent"]).startswith("fluent: no difference shown between ours and theirs")
    turned = rows["empathic"] | {"first": "theirs", "second": "ours"}
    turned["ties_left_out"] = turned["ties_left_out"] | {"win_rate": 0.25, "clustered": (0.1, 0.4)}
    assert "prefer ours to theirs in 75.0 %" in verdict(turned)
    assert "60.0 … 90.0" in verdict(turned)
    assert "too few votes" in verdict(rows["fluent"] | {"better": None})


def test_the_screen_has_both_treatments_of_ties(
    made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    print_report(made[2])
    shown = capsys.readouterr().out
    assert "44/0/4" in shown
    assert "split" in shown
    assert "Krippendorff's alpha" in shown
    left_out = "left out by the rule fixed in advance: rater 5 (median 1.0 s a pair, below 3 s)"
    assert left_out in shown
    assert "flagged as harmful: 1 pairs" in shown
    assert max(map(len, shown.split("•")[0].splitlines())) <= 80


def test_csv_has_a_row_per_set_comparison_and_treatment(made: Made) -> None:
    rows = list(csv.DictReader(io.StringIO(csv_text(csv_rows(made[2])))))
    assert len(rows) == 2 * 2 * 2
    first = rows[0]
    assert (first["set"], first["criterion"], first["treatment"]) == (
        "main",
        "empathic",
        "ties_left_out",
    )
    assert float(first["win_rate"]) == pytest.approx(44 / 48)
    assert float(first["wilson_low"]) < 44 / 48 < float(first["wilson_high"])


def test_small_p_values_are_not_zero() -> None:
    assert (p_text(0.0), p_text(0.0123), p_text(None)) == ("< 0.001", "0.012", "–")


def test_a_win_plot_marks_one_half() -> None:
    drawing = win_plot([Rate("a<b", 75.0, (50.0, 100.0)), Rate("none", None)], "rates")
    assert 'class="zero" x1="204.0" x2="204.0"' in drawing
    assert 'cx="252.0"' in drawing
    assert "a&lt;b" in drawing
    assert "–" in drawing


def keys_of(tree: Any) -> set[str]:
    """Every key of a tree of figures that is not a name of the study's own."""
    own = {"ours", "theirs", "empathic", "fluent", "a", "b", "c"}
    if isinstance(tree, dict):
        return (set(tree) - own).union(*map(keys_of, tree.values()))
    return set().union(*map(keys_of, tree)) if isinstance(tree, list) else set()


def test_every_key_of_the_json_is_on_the_page_of_the_docs(made: Made) -> None:
    study = made_study(systems=("a", "b", "c"), exchanges=3, raters=3)
    three = analyse(study, cast(study, lambda rater, place, criterion: "tie"))
    page = (Path(__file__).parents[4] / "docs" / "ab-tests.md").read_text(encoding="utf-8")
    told = set(re.findall(r"`(\w+)`", page.split("### The JSON")[1].split("## Votes are")[0]))
    assert keys_of(made[2]) | keys_of(three) <= told
