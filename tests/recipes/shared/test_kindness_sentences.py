"""Reading the labelled sentences of kindness."""

import json
from pathlib import Path

import pytest

from recipes.shared.kindness_sentences import sentences
from rewriting.errors import UserError

GOOD = {"id": "0", "text": "You fool 0.", "kind": "blame", "hurts": True}


@pytest.mark.parametrize(
    "line",
    ['{"text": "You fool."}', '{"hurts": true}', "no json", "[1, 2]"],
)
def test_a_bad_line_is_named(line: str, tmp_path: Path) -> None:
    good = json.dumps(GOOD)
    (tmp_path / "kindness_dev.jsonl").write_text(f"{good}\n{line}\n")
    with pytest.raises(UserError, match=r"kindness_dev.jsonl, line 2: a line needs `text`"):
        sentences(str(tmp_path), "dev")
