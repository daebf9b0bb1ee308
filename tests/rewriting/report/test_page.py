"""The page: self-contained, escaped, complete, and marked where it should be."""

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS
from rewriting.measures.rewrites import MEASURES
from rewriting.report.curves import Curve
from rewriting.report.page import Sample, Version, render, short_name, write_report


def figures(change: float = 1.0) -> dict[str, Any]:
    plain: dict[str, Any] = dict.fromkeys(MEASURES, 0.5)
    plain |= {"empathy_change": change, "improved": 60.0, "worsened": 10.0, "n": 5}
    groups = {"none": change, "some": 0.0, "high": None}
    intervals: dict[str, Any] = dict.fromkeys(MEASURES, (0.25, 0.75))
    intervals["empathy_change_by_initial"] = {"none": (0.5, 1.5), "some": None, "high": None}
    return plain | {
        "rewards/mine": 7.125,
        "empathy_change_by_initial": groups,
        "n_by_initial": {"none": 3, "some": 2, "high": 0},
        "most_repeated": [{"sentence": "Oh <no>.", "seekers": 4}],
        "intervals": intervals,
    }


def version(system: str, text: str, level: int = 0, *rationales: str) -> Version:
    levels = dict.fromkeys(MECHANISMS, level)
    return Version(system, text, levels, {"explorations": rationales}, {"fluency": 0.0123})


SAMPLES = [
    Sample(
        "row-1",
        "I failed <b>again</b>.",
        version("original", "Study & rest."),
        [
            version("runs/partner/model", "What happened? Study & rest.", 1, "What happened?"),
            version("generic", "Study & rest."),
            version("prompted", "</p><script>alert(1)</script>"),
        ],
    )
]


class Elements(HTMLParser):
    """Every element that is opened, its attributes, and that all are closed in order."""

    VOID = frozenset({"meta", "input", "br", "link", "img"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


@pytest.fixture(scope="module")
def page() -> str:
    return render(
        "Title & more",
        facts={"data": "sample:test"},
        figures={"original": figures(0.0), "runs/partner/model": figures()},
        samples=SAMPLES,
        curves=[
            Curve("reward", (0, 1), (0.5, 1.0), ((0, -6.719), (1, -6.1))),
            Curve("fluency", (0, 1), (0.1, 0.2)),
        ],
    )


def test_it_is_well_formed_and_loads_nothing(page: str) -> None:
    elements = Elements(page)
    assert not {"link", "img", "iframe", "object"} & {name for name, _ in elements.found}
    assert all("src" not in given and "href" not in given for _, given in elements.found)
    assert "url(" not in page
    assert "@import" not in page


def test_its_policy_allows_its_own_script_only(page: str) -> None:
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policies = [m["content"] for m in Elements(page).of("meta") if "http-equiv" in m]
    assert policies == [
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    ]


def test_curves_say_what_dev_gained(page: str) -> None:
    assert "Total reward <small>dev −6.72 → −6.1</small>" in page
    assert "<figcaption>fluency</figcaption>" in page


def test_posts_are_text(page: str) -> None:
    assert "I failed &lt;b&gt;again&lt;/b&gt;." in page
    assert "&lt;/p&gt;&lt;script&gt;alert(1)" in page
    assert len(Elements(page).of("script")) == 1
    assert "Oh &lt;no&gt;." in page


def test_new_sentences_and_rationales_are_marked(page: str) -> None:
    marked = (
        '<ins><span class="explorations" title="explorations">What happened?</span></ins>'
        " Study &amp; rest."
    )
    assert marked in page
    assert "<span>fluency <b>0.012</b></span>" in page
    assert "left as it was" in page  # generic changed nothing
    assert "taken out: <del>Study &amp; rest.</del>" in page  # prompted replaced it


def test_rewrites_can_be_filtered(page: str) -> None:
    found = [given for given in Elements(page).of("div") if "data-change" in given]
    assert [(one["data-system"], one["data-change"]) for one in found] == [
        ("runs/partner/model", "up"),
        ("generic", "same"),
        ("prompted", "same"),
    ]
    (card,) = Elements(page).of("article")
    assert card["data-initial"] == "none"


def test_every_figure_is_in_the_table_with_its_meaning(page: str) -> None:
    table = page[page.index("<table>") : page.index("</table>")]
    for measure in MEASURES.values():
        assert measure.title in table
        assert measure.meaning.replace("'", "&#39;") in page
    assert ">mine <" in table
    assert "7.125" in table
    assert "+1.00" in table
    assert "partner/model</th>" in table


def test_curves_and_samples_are_optional() -> None:
    page = render("x", facts={}, figures={"generic": figures()})
    Elements(page)
    assert "Training" not in page
    assert "Before and after" not in page
    assert "<figure>" in page


def test_a_path_is_named_by_its_end() -> None:
    assert short_name("runs/partner/model") == "partner/model"
    assert short_name("generic") == "generic"


def test_it_is_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "new" / "report.html"
    write_report(path, "page")
    assert path.read_text() == "page"
    assert [file.name for file in path.parent.iterdir()] == ["report.html"]
    with pytest.raises(UserError, match="cannot write"):
        write_report(path / "inside", "page")
