"""The default sum on the bundled sample: stock sentences must not win again."""

import json
from pathlib import Path

import pytest

from recipes.evaluate.audit.table import Config, run
from rewriting.data import load_exchanges

KINDS = ("very_empathic", "empathic")


@pytest.mark.integration
def test_what_the_person_said_is_paid_more_than_stock_and_nonsense(tmp_path: Path) -> None:
    """On the empathic replies of the dev part: the real sentence of a weak one is often stock
    itself. The bars lie below what is measured, and far above what the sum with `epitome` had."""
    rows = [e for e in load_exchanges("sample:dev") if e.extra["kind"] in KINDS]
    file = tmp_path / "replies.jsonl"
    file.write_text("".join(json.dumps(e.row()) + "\n" for e in rows), encoding="utf-8")
    figures = run(Config(data=str(file)))
    assert figures["matched_beats_every_stock"] >= 65
    assert figures["matched_beats_wrong_post"] >= 75
    assert figures["matched_beats_every_nonsense"] >= 85
