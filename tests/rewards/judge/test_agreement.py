"""benchmarks/judge_agreement.py: its arithmetic, and the script itself for three pairs."""

import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rewards.judge.methods import Change
from rewriting.errors import UserError
from tests.rewards.judge.server import Endpoint, Reply, completion

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "judge_agreement.py"
PAIRS = [
    {"seeker_post": "I failed.", "better": "So sorry.", "worse": "Study.", "kind": "stock"},
    {"seeker_post": "It rains.", "better": "Oh.", "worse": "So sorry.", "kind": "stock"},
    {"seeker_post": "My dog.", "better": "So sorry, your dog.", "worse": "Ha.", "kind": "rude"},
]


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


def test_figures_by_hand(script: dict[str, Any]) -> None:
    changes = [
        Change(0.4, (0.9, 0.5)),  # right, though not in both orders
        Change(0.8, (0.9, 0.1)),  # right in both
        Change(-0.2, (0.6, 0.8)),
        Change(0.0, (0.7, 0.7)),  # a tie
    ]
    found = script["agreement"](changes, 2.0)
    assert found.n == 4
    assert found.accuracy == pytest.approx(2.5 / 4)
    assert found.right_in_both_orders == 1 / 4
    assert found.position_bias == pytest.approx((1.4 + 1.0 + 1.4 + 1.4) / 8 - 0.5)
    assert found.margin == pytest.approx(0.25)
    assert found.seconds_per_pair == 0.5
    # Wilson 1927: 8 of 10 lie between 0.490 and 0.943.
    assert script["wilson"](0.8, 10) == pytest.approx((0.490, 0.943), abs=5e-4)


def test_the_script(
    script: dict[str, Any],
    endpoint: Endpoint,
    jsonl: Callable[..., Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def likes_sorry(request: dict[str, Any]) -> Reply:
        said = request["messages"][0]["content"]
        if "Reply A:" not in said:
            return completion("4" if "sorry" in said.split("Reply:")[1] else "0")
        return completion("A" if "sorry" in said.split("Reply A:")[1].split("Reply B:")[0] else "B")

    endpoint.replies = likes_sorry
    out = tmp_path / "figures.json"
    judge = f"{{model: any-model, endpoint: '{endpoint.url}'}}"
    arguments = ["--pairs", str(jsonl(PAIRS)), "--judge", judge, "--methods", "compare,grade"]
    script["main"]([*arguments, "--json", str(out)])
    figures = json.loads(out.read_text())
    assert {kind: one["accuracy"] for kind, one in figures["compare"].items()} == pytest.approx(
        {"all": 2 / 3, "stock": 0.5, "rude": 1.0}
    )
    assert figures["compare"]["all"]["position_bias"] == 0
    assert figures["grade"]["all"]["margin"] == pytest.approx(4 / 3)
    assert figures["grade"]["all"]["position_bias"] is None
    assert "judged by any-model" in capsys.readouterr().out


def test_bad_lines_are_named(script: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    for text, message in [
        (json.dumps(PAIRS[0]) + "\n{", "line 2: no pair"),
        ('{"seeker_post": "x", "better": "y"}', "line 1: no pair .*'worse'"),
        ('{"seeker_post": "x", "better": "y", "worse": 3}', "line 1: .* are texts"),
        ("", "holds no pair"),
    ]:
        path.write_text(text)
        with pytest.raises(UserError, match=message):
            script["read_pairs"](path)
