"""`evaluate.py responses` for real, with tiny models, on figures that can be worked out."""

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest

from policies.generating.generator import Generator
from recipes.entry import run_evaluation
from recipes.evaluate.responses import table as evaluate_responses
from rewards.identifiers import named
from rewriting.exchange import MECHANISMS
from rewriting.measures.measure import measures_table
from rewriting.measures.responses import RESPONSE_MEASURES
from tests.recipes.errors import the_error
from tests.recipes.words import Words
from tests.tiny_lm import write_tiny_llama
from tests.tiny_t5 import write_tiny_t5

DOCS = Path(__file__).parents[4] / "docs"
ROWS = [
    {"id": "1", "seeker_post": "I failed.", "response_post": "So sorry.", "emotion": "sad"},
    {"id": "2", "seeker_post": "It rains.", "response_post": "Read a book.", "emotion": "calm"},
    {"id": "3", "seeker_post": "I lost.", "response_post": "How sorry I am.", "emotion": "sad"},
    {"id": "4", "seeker_post": "A walk?", "response_post": "Let us go.", "emotion": "calm"},
]
OUTPUTS = [
    {"id": "1", "rewritten_response": "I am sorry."},
    {"id": "2", "rewritten_response": "Read a book."},
    {"id": "3", "rewritten_response": "Oh."},
    {"id": "4", "rewritten_response": "<b>Oh.</b>"},
]
"""Levels (all three 2 with the word sorry, else 0): human 2, 0, 2, 0; here 2, 0, 0, 0."""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    t5 = write_tiny_t5(folder / "t5")
    settings = {"max_context_tokens": 96, "max_new_tokens": 8, "num_virtual_tokens": 2}
    Generator.create(str(t5), **settings).save(folder / "policy")
    return {"t5": t5, "policy": folder / "policy", "judge": write_tiny_llama(folder / "lm")}


@pytest.fixture
def run(
    tiny: dict[str, Path], monkeypatch: pytest.MonkeyPatch, jsonl: Callable[..., Path]
) -> Callable[..., None]:
    monkeypatch.setattr(named, "load_identifier", lambda name="words", **_: Words())
    data = jsonl(ROWS, "data.jsonl")

    def command(*arguments: str | Path) -> None:
        given = ["--data", str(data), "--language_model", str(tiny["judge"])]
        run_evaluation(["responses", *given, *map(str, arguments)])

    return command


def test_the_figures_of_the_contract(
    run: Callable[..., None],
    jsonl: Callable[..., Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    outputs, out = jsonl(OUTPUTS, "outputs.jsonl"), tmp_path / "figures.json"
    run("--systems", f"human,mine={outputs}", "--json", out)
    figures = json.loads(out.read_text())
    assert list(figures) == ["human", "mine"]
    human, mine = figures.values()
    for system in (human, mine):
        assert set(RESPONSE_MEASURES) <= set(system)
        assert system["n"] == 4
        assert system["perplexity"] > 1
    assert human["emp_f1"] == human["rouge_l"] == 100
    # Level 0: F1 2·2/(2+3) = 0.8. Level 2: 2·1/(2+1) = 2/3. Each is half of the human ones.
    for name in ("emp_f1", *MECHANISMS):
        assert mine[name] == pytest.approx(100 * (0.8 + 2 / 3) / 2)
    # A reply is 100 where it is the human one, and shares half of its words at the first row.
    assert mine["rouge_l"] == pytest.approx((100 * 2 * (1 / 3) * (1 / 2) / (5 / 6) + 100) / 4)
    assert mine["words"] == pytest.approx(8 / 4)
    assert mine["empathy"] == 6 / 4
    assert mine["level_shares"] == {m: [0.75, 0.0, 0.25] for m in MECHANISMS}
    assert mine["by_emotion"]["calm"] == {"emp_f1": 100, **dict.fromkeys(MECHANISMS, 100), "n": 2}
    assert mine["by_emotion"]["sad"]["emp_f1"] == pytest.approx(100 * 2 / 3)
    difference = mine["emp_f1_difference"]
    assert difference["to"] == "human"
    assert difference["value"] == pytest.approx(mine["emp_f1"] - 100)
    text = capsys.readouterr().out
    assert "Emp-F1 by emotion" in text
    assert text.index("sad") < text.index("calm")  # the worst first


def test_generators_respond_and_what_they_said_can_be_read_again(
    run: Callable[..., None], tiny: dict[str, Path], tmp_path: Path
) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    systems = f"trained={tiny['policy']},bare=model:{tiny['t5']}"
    arguments = ["--temperature", "0.8", "--top_p", "0.9", "--outputs", tmp_path / "made"]
    run("--systems", systems, "--json", first, *arguments)
    lines = (tmp_path / "made" / "trained.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["1", "2", "3", "4"]
    again = [f"{name}={tmp_path / 'made' / f'{name}.jsonl'}" for name in ("trained", "bare")]
    run("--systems", ",".join(again), "--json", second)
    assert json.loads(first.read_text()) == json.loads(second.read_text())


def test_decoding_is_that_of_the_policy_unless_told(
    run: Callable[..., None], tiny: dict[str, Path], tmp_path: Path
) -> None:
    made = [tmp_path / name for name in ("own", "told", "cold")]
    given: list[list[str]] = [[], ["--temperature", "1"], ["--temperature", "0.01"]]
    for folder, arguments in zip(made, given, strict=True):
        run("--systems", f"x={tiny['policy']}", "--outputs", folder, *arguments)
    own, told, cold = ((folder / "x.jsonl").read_text() for folder in made)
    assert own == told
    assert own != cold


def test_the_report(run: Callable[..., None], jsonl: Callable[..., Path], tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    run("--systems", f"human,mine={jsonl(OUTPUTS, 'o.jsonl')}", "--html", page, "--samples", "4")
    text = page.read_text(encoding="utf-8")
    assert "&lt;b&gt;Oh.&lt;/b&gt;" in text
    assert "How sorry I am." in text
    assert "Emp-F1 by emotion" in text
    assert "interpretations <b>0</b> (human 2)" in text


def test_rows_can_be_drawn(run: Callable[..., None], tmp_path: Path) -> None:
    for seed in range(6):
        folder = tmp_path / str(seed)
        arguments = ["--limit", "2", "--shuffle", "true", "--seed", seed, "--outputs", folder]
        run("--systems", "human", *arguments)
    texts = {(tmp_path / str(seed) / "human.jsonl").read_text() for seed in range(6)}
    assert len(texts) > 1
    assert all(text.count("\n") == 2 for text in texts)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--systems", "human,nobody"], "no policy 'nobody'"),
        (["--systems", "gone.jsonl"], "no such file of outputs"),
        (["--systems", "human", "--split", "half"], "split is train, dev, test or all"),
        (["--systems", "human,model:./nowhere"], "model folder './nowhere' does not exist"),
        (["--systems", "human", "--temperature", "-1"], "temperature must be above 0"),
        (["--systems", "human", "--limit", "-1"], "limit must be 0 or more"),
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
    (tmp_path / "made").mkdir()
    for name, path in (
        ("json", tmp_path / "precious.json"),
        ("html", tmp_path / "precious.html"),
        ("outputs", tmp_path / "made" / "human.jsonl"),
    ):
        path.write_text("precious")
        with pytest.raises(SystemExit):
            run("--systems", "human", f"--{name}", path.parent if name == "outputs" else path)
        assert path.read_text() == "precious"


def test_every_field_and_measure_is_explained() -> None:
    for field in fields(evaluate_responses.Config):
        assert field.metadata.get("help"), field.name
    page = (DOCS / "emprl.md").read_text(encoding="utf-8")
    assert "\n".join(measures_table(RESPONSE_MEASURES)) in page
