"""`make run` in small: train a policy, compare it with others, look at the page."""

import json
import re
from dataclasses import fields
from pathlib import Path

import pytest

from recipes.entry import run_evaluation, run_training
from recipes.evaluate.rewrites import table as evaluate_rewrites
from recipes.train.partner import recipe as partner
from rewards.terms import coherence
from rewriting.runtime.models.named import load_sentence_encoder
from tests.recipes.train.partner.toys import ROWS, SETTINGS, flags, write_tiny_identifier
from tests.tiny_lm import write_tiny_llama

MAKEFILE = Path(__file__).parents[4] / "Makefile"


def test_training_then_evaluation_gives_a_page_with_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data, page, figures = (tmp_path / name for name in ("rows.jsonl", "page.html", "page.json"))
    data.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    identifier, output = write_tiny_identifier(tmp_path), tmp_path / "partner"
    encoder = tmp_path / "encoder"  # write_tiny_identifier made it
    judge = coherence.CoherenceModel(
        load_sentence_encoder(str(encoder)), coherence.CoherenceHead(16)
    )
    monkeypatch.setattr(coherence.CoherenceModel, "load", lambda **_: judge)
    rewards = "{empathy_change: 1, fluency: 5, coherence: 0.5, edit_size: 0}"
    config = partner.Config(
        output=str(output),
        data=str(data),
        model=str(write_tiny_llama(tmp_path / "model")),
        identifier=str(identifier),
        # So long that most sentences end: nine of ten responses are changed.
        **SETTINGS | {"steps": 2, "rewards": rewards, "max_new_tokens": 48},
    )
    run_training(["partner", *flags(config)])
    trained = output / "policy"
    capsys.readouterr()
    options = {
        "systems": f"original,generic,trained={trained}",
        "data": data,
        "split": "test",
        "model": identifier,
        "language_model": config.model,
        "sentence_encoder": encoder,
        "log": output / "log.jsonl",
        "html": page,
        "json": figures,
        "overwrite": True,
    }
    given = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    run_evaluation(["rewrites", *given])
    assert str(page) in capsys.readouterr().out
    measured = json.loads(figures.read_text(encoding="utf-8"))
    assert list(measured) == ["original", "generic", "trained"]
    assert measured["trained"]["n"] == measured["original"]["n"] > 3
    assert measured["trained"]["edit_rate"] > 0
    assert measured["original"]["edit_rate"] == 0
    text = page.read_text(encoding="utf-8")
    assert 'data-system="trained"' in text
    assert "<ins>" in text
    curves = re.findall(
        r"<figure><figcaption>([^<]+) <small>dev [^<]+</small></figcaption><svg", text
    )
    terms = ["empathy_change", "fluency", "coherence", "edit_size"]
    assert [name for name in curves if name in ("Total reward", *terms)] == ["Total reward", *terms]


@pytest.mark.parametrize(
    ("program", "config"), [("train", partner.Config), ("evaluate", evaluate_rewrites.Config)]
)
def test_make_run_uses_settings_that_exist(program: str, config: type) -> None:
    text = MAKEFILE.read_text(encoding="utf-8").replace("\\\n", " ")
    (line,) = re.findall(rf"python {program}\.py .*", text)
    used = set(re.findall(r"--(\w+)", line))
    assert used
    assert used <= {field.name for field in fields(config)}
