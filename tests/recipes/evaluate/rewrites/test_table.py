"""`evaluate.py rewrites` for real, with tiny models, on figures that can be worked out."""

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from recipes.entry import run_evaluation
from recipes.evaluate.rewrites import table as evaluate_rewrites
from recipes.shared.outcomes import summary
from rewards.identifiers import named
from rewards.identifiers.assessment import Assessment, Judgement
from rewards.named import Models
from rewards.terms import coherence
from rewriting import MECHANISMS, Edit, Exchange, Rewrite
from rewriting.measures.measure import measures_table
from rewriting.measures.rewrites import MEASURES, ON_REQUEST, Outcome
from rewriting.runtime.models.named import load_sentence_encoder
from tests.recipes.errors import the_error
from tests.recipes.words import Words
from tests.rewards.judge.server import Reply, completion, serving
from tests.tiny_lm import write_tiny_encoder, write_tiny_llama

DOCS = Path(__file__).parents[4] / "docs"
ROWS = [
    {"id": "a1", "seeker_id": "a", "seeker_post": "I failed.", "response_post": "Study. Rest."},
    {"id": "a2", "seeker_id": "a", "seeker_post": "I failed.", "response_post": "I am sorry."},
    {"id": "b1", "seeker_id": "b", "seeker_post": "It rains.", "response_post": "Stay in. Read."},
]
OUTPUTS = [
    ROWS[0] | {"rewritten_response": "So sorry. Study. Rest."},
    ROWS[1] | {"rewritten_response": "I am glad."},
    ROWS[2] | {"rewritten_response": "So sorry. Stay in. Read."},
]
"""Empathy (6 with the word sorry, else 0): 0 → 6, 6 → 0, 0 → 6."""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    return {
        "language_model": write_tiny_llama(folder / "lm"),
        "sentence_encoder": write_tiny_encoder(folder),
    }


@pytest.fixture
def run(
    tiny: dict[str, Path], monkeypatch: pytest.MonkeyPatch, jsonl: Callable[..., Path]
) -> Callable[..., None]:
    """The command with tiny models on ROWS."""
    encoder = load_sentence_encoder(str(tiny["sentence_encoder"]))
    model = coherence.CoherenceModel(encoder, coherence.CoherenceHead(16))
    monkeypatch.setattr(coherence.CoherenceModel, "load", lambda **_: model)
    monkeypatch.setattr(named, "load_identifier", lambda name="words", **_: Words())
    monkeypatch.setattr(Models, "in_context", Words())
    data = jsonl(ROWS, "data.jsonl")

    def command(*arguments: str | Path) -> None:
        models = [text for name, path in tiny.items() for text in (f"--{name}", str(path))]
        given = [str(argument) for argument in arguments]
        run_evaluation(["rewrites", "--data", str(data), *models, *given])

    return command


def test_the_figures_of_the_contract(
    run: Callable[..., None], jsonl: Callable[..., Path], tmp_path: Path
) -> None:
    outputs, out = jsonl(OUTPUTS, "outputs.jsonl"), tmp_path / "figures.json"
    run("--systems", f"original,generic,mine={outputs}", "--json", out)
    figures = json.loads(out.read_text())
    assert list(figures) == ["original", "generic", "mine"]
    for system in figures.values():
        assert set(MEASURES) <= set(system)
        assert system["n"] == 3
        assert system["empathy_before"] == 2.0
        assert system["n_by_initial"] == {"none": 2, "some": 0, "high": 1}
        assert system["perplexity"] > 1
        assert 0 < system["coherence"] < 1
    original, generic, mine = figures.values()
    assert original["empathy_change"] == original["edit_rate"] == 0
    assert original["repeated_sentences"] is original["specificity_new"] is None
    assert generic["repeated_sentences"] == 100
    assert generic["most_repeated"] == [
        {"sentence": "This must have been really hard for you.", "seekers": 2}
    ]
    assert mine["empathy_after"] == 4.0
    assert mine["empathy_change"] == 2.0
    assert mine["empathy_change_by_initial"] == {"none": 6.0, "some": None, "high": -6.0}
    assert (mine["improved"], mine["worsened"]) == pytest.approx((200 / 3, 100 / 3))
    # Two words more of four, one of three changed, two more of five.
    assert mine["edit_rate"] == pytest.approx((2 / 4 + 1 / 3 + 2 / 5) / 3)
    # so sorry. study. rest. | i am glad. | so sorry. stay in. read.: ten of twelve, eight of nine.
    assert (mine["distinct_1"], mine["distinct_2"]) == (10 / 12, 8 / 9)
    # Of "So sorry." twice and "I am glad." once.
    assert mine["repeated_sentences"] == pytest.approx(200 / 3)
    assert mine["same_sentence"] >= mine["repeated_sentences"]
    # By seeker: a has changes 6 and −6, b has 6.
    assert mine["intervals"]["empathy_change"] == [0.0, 6.0]


def test_systems_are_tested_against_the_chosen_one(
    run: Callable[..., None], jsonl: Callable[..., Path], tmp_path: Path
) -> None:
    outputs, out = jsonl(OUTPUTS, "outputs.jsonl"), tmp_path / "figures.json"
    run("--systems", f"generic,original,mine={outputs}", "--against", "original", "--json", out)
    figures = json.loads(out.read_text())
    assert "against" not in figures["original"]
    assert figures["generic"]["against"]["system"] == "original"
    found = figures["mine"]["against"]["measures"]
    # Changes 6, −6 of one seeker and 6 of the other, against 0: sums 0 and 6, all flips as far.
    change = found["empathy_change"]
    assert (change["difference"], change["p"], change["p_holm"], change["n"]) == (2.0, 1.0, 1.0, 3)
    assert found["perplexity"]["ratio"] == pytest.approx(
        figures["mine"]["perplexity"] / figures["original"]["perplexity"]
    )
    assert found["specificity_new"]["p"] is None  # the originals have no new sentence


def test_the_report_has_the_rewrites_and_the_curves(
    run: Callable[..., None], jsonl: Callable[..., Path], tmp_path: Path
) -> None:
    log = jsonl([{"step": 1, "reward": 0.5, "rewards/fluency": 0.1}], "log.jsonl")
    outputs, page = jsonl(OUTPUTS, "outputs.jsonl"), tmp_path / "report.html"
    run("--systems", f"original,mine={outputs}", "--html", page, "--log", log, "--samples", "2")
    text = page.read_text()
    assert text.count("<article") == 2
    marked = "".join(
        f'<span class="{name}" title="{name.replace("_", " ")}">' for name in MECHANISMS
    )
    assert f"<ins>So {marked}sorry</span></span></span>.</ins> Study. Rest." in text
    assert "0 → 6 of 6" in text
    assert "Total reward" in text
    assert "Against original" in text


def test_terms_that_were_asked_for_stand_beside_the_others(
    run: Callable[..., None], tmp_path: Path
) -> None:
    rewards = "{empathy_change: 1, repetition: {weight: 2, n: 1}}"
    run("--systems", "generic", "--rewards", rewards, "--json", tmp_path / "x.json")
    figures = json.loads((tmp_path / "x.json").read_text())["generic"]
    assert figures["empathy_change"] == figures["rewards/empathy_change"] == 0
    assert figures["rewards/repetition"] == 0
    assert "rewards/repetition" in figures["intervals"]


def test_a_judge_is_a_column_where_one_is_named(
    run: Callable[..., None], jsonl: Callable[..., Path], tmp_path: Path
) -> None:
    def likes_sorry(request: dict[str, Any]) -> Reply:
        replies = request["messages"][0]["content"].split("Reply A:")[1].split("Reply B:")
        return completion("B" if "sorry" in replies[1] else "A")

    outputs, out = jsonl(OUTPUTS, "outputs.jsonl"), tmp_path / "figures.json"
    with serving() as server:
        server.replies = likes_sorry
        judge = f"{{model: any-model, endpoint: '{server.url}'}}"
        html = tmp_path / "report.html"
        run(
            "--systems", f"original,mine={outputs}", "--judge", judge, "--json", out, "--html", html
        )
        assert len(server.requests) == 6  # three pairs in both orders, nothing for the originals
    original, mine = json.loads(out.read_text()).values()
    assert (original["judge"], original["judge_position_bias"]) == (0, None)
    # Sorry comes in twice and goes away once.
    assert mine["judge"] == pytest.approx(1 / 3)
    assert mine["judge_position_bias"] == 0
    assert "judge" in mine["intervals"]
    assert mine["against"]["measures"]["judge"]["difference"] == pytest.approx(1 / 3)
    assert "judge, position bias" in html.read_text().casefold()


@pytest.mark.parametrize(("columns", "shown"), [("140", True), ("60", False)])
def test_intervals_are_shown_where_there_is_room(
    run: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    columns: str,
    shown: bool,
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    run("--systems", "original,generic")
    out = capsys.readouterr().out
    assert "change in empathy" in out
    assert ("2.00 (0.00…3.00)" in out) is shown


def test_only_originals_with_little_empathy(run: Callable[..., None], tmp_path: Path) -> None:
    arguments = ["--systems", "original", "--json", tmp_path / "x.json", "--overwrite", "true"]
    run(*arguments, "--max_empathy", "1")
    assert json.loads((tmp_path / "x.json").read_text())["original"]["n"] == 2
    run(*arguments, "--limit", "1")
    assert json.loads((tmp_path / "x.json").read_text())["original"]["n"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--systems", ","], "name at least one system"),
        (["--systems", "original,nobody"], "no policy 'nobody'"),
        (["--systems", "generic,generic"], "two systems are called 'generic'"),
        (["--systems", "gone.jsonl"], "no such file of outputs"),
        (["--systems", "=x"], "give a name, a path, or label=path"),
        (["--log", "gone.jsonl"], "there is no such file"),
        (["--systems", "original,generic", "--against", "x"], "the systems are original, generic"),
        (["--split", "half"], "split is train, dev, test or all"),
        (["--max_empathy", "-1"], "holds no exchange"),
        (["--rewards", "{nothing: 1}"], "there is no reward 'nothing'"),
        (["--judge", "{modle: x}"], "a judge has no option 'modle'. Did you mean model?"),
    ],
)
def test_mistakes_are_one_line(
    run: Callable[..., None],
    capfd: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    assert message in the_error(run, arguments, capfd)


def test_results_are_not_replaced_unasked(run: Callable[..., None], tmp_path: Path) -> None:
    for name in ("json", "html"):
        path = tmp_path / f"precious.{name}"
        path.write_text("precious")
        with pytest.raises(SystemExit):
            run("--systems", "original", f"--{name}", path)
        assert path.read_text() == "precious"


def outcome(before: int, after: int, perplexity: float, post: str = "x") -> Outcome:
    def assessed(level: int) -> Assessment:
        return Assessment({m: Judgement(level, (1.0, 0.0, 0.0)) for m in MECHANISMS})

    rewrite = Rewrite(Exchange(post, "Rest."), "Oh. Rest.", (Edit.insert(0, "Oh."),))
    return Outcome(rewrite, assessed(before), assessed(after), {"perplexity": perplexity})


def test_perplexity_is_a_geometric_mean() -> None:
    figures = summary_of([outcome(0, 1, 10.0, "x"), outcome(0, 1, 1000.0, "y")])
    assert figures["perplexity"] == pytest.approx(100)
    low, high = figures["intervals"]["perplexity"]
    assert (low, high) == pytest.approx((10, 1000))


def summary_of(outcomes: list[Outcome]) -> dict[str, Any]:
    """With the terms that `evaluate.py rewrites` always measures filled in."""
    names = ("coherence", "specificity", "specificity_new", "own_post")
    filled = [
        Outcome(one.rewrite, one.before, one.after, {**dict.fromkeys(names), **one.values})
        for one in outcomes
    ]
    return summary(filled)


def test_every_field_is_explained() -> None:
    for field in fields(evaluate_rewrites.Config):
        assert field.metadata.get("help"), field.name


def test_every_measure_is_on_the_page() -> None:
    page = (DOCS / "evaluation.md").read_text(encoding="utf-8")
    assert "\n".join(measures_table(MEASURES | ON_REQUEST)) in page
