"""Drawings: valid SVG, things where they belong, nothing unescaped."""

import re
from xml.etree import ElementTree

import pytest

from rewriting.report.charts import (
    LABELS,
    VALUES,
    Dot,
    dot_plot,
    line_plot,
    nice_ticks,
    scale,
    share_plot,
    tag,
)
from rewriting.report.curves import Curve


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 1, [0, 0.25, 0.5, 0.75, 1]),
        (-0.4, 2, [-1, 0, 1, 2]),
        (3.1, 3.2, [3.1, 3.125, 3.15, 3.175, 3.2]),
        (0, 0, [-1, -0.5, 0, 0.5, 1]),
        (100, 100, [90, 95, 100, 105, 110]),
        (7, 1234, [0, 500, 1000, 1500]),
    ],
)
def test_ticks_are_round_and_enclose(low: float, high: float, ticks: list[float]) -> None:
    assert nice_ticks(low, high) == ticks


def test_a_scale_puts_ends_at_ends() -> None:
    place = scale(-1, 3, 100, 300)
    assert [place(-1), place(0), place(3)] == [100, 150, 300]
    assert scale(2, 2, 0, 10)(2) == 5


def test_dots_stand_at_their_values() -> None:
    rows = [Dot("a group"), Dot("x", 0.0, (0.0, 1.0), "0.00"), Dot("y", None, None, "–")]
    drawing = ElementTree.fromstring(dot_plot(rows, "a plot"))
    (circle,) = drawing.iter("circle")
    assert float(circle.attrib["cx"]) == LABELS
    (whisker,) = [e for e in drawing.iter("line") if "whisker" in e.attrib["class"]]
    assert (float(whisker.attrib["x1"]), float(whisker.attrib["x2"])) == (LABELS, VALUES)
    assert drawing.attrib["aria-label"] == "a plot"
    assert [e.text for e in drawing.iter("text") if e.attrib["class"] == "heading"] == ["a group"]
    assert dot_plot([Dot("x", None, None, "–")], "nothing") == ""


def test_shares_fill_the_bar() -> None:
    drawing = ElementTree.fromstring(share_plot([("x", (75, 0, 25))], "shares"))
    bars = {bar.attrib["class"]: bar.attrib for bar in drawing.iter("rect")}
    assert set(bars) == {"share0", "share2"}
    assert float(bars["share2"]["x"]) == LABELS + 0.75 * (360 - LABELS)


def test_a_curve_has_its_points_and_its_course() -> None:
    curve = Curve("reward", tuple(range(1000)), tuple(step / 100 for step in range(1000)))
    drawing = ElementTree.fromstring(line_plot(curve, "reward"))
    lines = list(drawing.iter("polyline"))
    assert [line.attrib["class"] for line in lines] == ["raw", "course"]
    assert len(lines[0].attrib["points"].split()) == 240
    texts = [element.text for element in drawing.iter("text")]
    assert "step 0" in texts
    assert "step 999" in texts
    ElementTree.fromstring(line_plot(Curve("reward", (3,), (1.0,)), "one point"))


def test_dev_has_dots_of_its_own_on_the_same_axis() -> None:
    curve = Curve("reward", (1, 2), (0.0, 1.0), ((0, -1.0), (2, 3.0)))
    drawing = ElementTree.fromstring(line_plot(curve, "reward"))
    dots = [(float(c.attrib["cx"]), float(c.attrib["cy"])) for c in drawing.iter("circle")]
    assert [line.attrib["class"] for line in drawing.iter("polyline")] == ["raw", "course", "dev"]
    assert dots == [(46, 128), (354, 8)]  # the left end at the bottom, the right end at the top
    assert "step 0" in [element.text for element in drawing.iter("text")]


def test_texts_are_escaped_and_long_labels_are_cut() -> None:
    assert tag("text", "<b>", class_='"') == '<text class="&#34;">&lt;b&gt;</text>'
    name = "runs/<script>alert(1)</script>"
    drawing = dot_plot([Dot(name, 1.0, None, "1")], name)
    assert "<script>" not in drawing
    label = next(
        e for e in ElementTree.fromstring(drawing).iter("text") if e.find("title") is not None
    )
    assert label.text == "runs/<script>al…"
    assert re.sub(r"\s", "", label.findtext("title") or "") == name
