"""Figures by hand; samples and curves as files."""

import json
from pathlib import Path

import pytest

from policies.reinforce_curves import plot_curves
from policies.reinforce_log import Outcome, distinct, kl_summary, summary
from policies.reinforce_samples import SampleFile, headline, print_samples, shortened

OUTCOMES = [
    Outcome(1.0, {"a": 1.0, "b": None}, ("insert",), ("Oh dear.",), (4,), (1.0,), 0.5, 0.2, 0.05),
    Outcome(3.0, {"a": 3.0, "b": None}, ("keep",), (), (), (0.5,), 1.5, 0.4, 0.15),
    Outcome(5.0, {"a": 2.0, "b": 7.0}, ("replace", "keep"), ("oh  Dear.",), (6,), (0.0, 0.5)),
    Outcome(None, {"a": 2.0, "b": None}, ("insert",), ("I see you.",), (5,), (0.0,)),
]


def test_figures_by_hand() -> None:
    assert summary(OUTCOMES, num_samples=2) == pytest.approx(
        {
            "reward": 3.0,
            "reward_std": (8 / 3) ** 0.5,
            "reward_spread": (1.0 + 0.0) / 2,
            "rewards/a": 2.0,
            "rewards/b": 7.0,
            "share_insert": 0.4,
            "share_replace": 0.2,
            "share_keep": 0.4,
            "actions": 1.25,
            "sentence_tokens": 5.0,
            "sentence_words": 7 / 3,
            "distinct_sentences": 0.5,
            "position_entropy": 0.4,
        }
    )
    assert kl_summary(OUTCOMES) == pytest.approx({"kl_k1": 0.5, "kl_k3": 0.15, "kl_penalty": 0.05})


def test_what_is_not_known_is_left_out() -> None:
    kept = Outcome(None, {"a": None}, ("keep",), (), (), (0.0,))
    assert summary([kept, kept], 2) == {
        "share_insert": 0.0,
        "share_replace": 0.0,
        "share_keep": 1.0,
        "actions": 1.0,
        "position_entropy": 0.0,
    }


def test_distinct() -> None:
    assert distinct(["a", "b", "c"]) == 1
    assert distinct(["a", "A ", "a"]) == 0
    assert distinct(["a"]) is None


ROW = {
    "step": 3,
    "seeker_post": "I failed. " * 60,
    "response_post": "Study.",
    "rewritten_response": "Oh dear [bold]. Study.",
    "reward": 1.25,
    "rewards": {"kindness": 2.0, "coherence": None},
}


def test_samples_on_the_screen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    print_samples("step 3: reward 1.250", [ROW])
    shown = capsys.readouterr().out
    assert "step 3: reward 1.250" in shown
    assert "Oh dear [bold]." in shown
    assert "kindness 2.000" in shown
    assert "coherence" not in shown
    assert "…" in shown


def test_a_text_is_cut_at_a_word() -> None:
    assert shortened("one  two\nthree", 9) == "one two …"
    assert shortened("one two", 9) == "one two"


def test_a_headline_says_what_is_known() -> None:
    assert headline({"step": 3, "reward": 1.0, "share_keep": 0.25}) == (
        "step 3: reward 1.000, share_keep 0.250"
    )


def test_samples_after_the_checkpoint_are_taken_out_again(tmp_path: Path) -> None:
    file = SampleFile(tmp_path, writes=True)
    file.add([{"step": 1}, {"step": 1}])
    state = file.state_dict()
    file.add([{"step": 2}])
    again = SampleFile(tmp_path, writes=True)
    again.load_state_dict(state)
    again.add([{"step": 2, "text": "ü"}])
    steps = [json.loads(line)["step"] for line in again.path.read_text().splitlines()]
    assert steps == [1, 1, 2]
    fresh = SampleFile(tmp_path, writes=True)  # a new run in the folder begins a new file
    fresh.add([{"step": 9}])
    assert again.path.read_text() == '{"step": 9}\n'
    silent = SampleFile(tmp_path / "other", writes=False)
    silent.add([{"step": 1}])
    assert not silent.path.exists()


def test_curves_of_a_short_and_a_long_run(tmp_path: Path) -> None:
    log = [{"step": 0, "dev/reward": 0.1}]
    plot_curves(log, tmp_path / "start.png", "nothing yet")
    log += [
        {"step": n, "reward": n / 9, "rewards/a": 1.0, "share_keep": 0.5, "kl_k1": 0.1}
        for n in range(1, 40)
    ]
    plot_curves(log, tmp_path / "long.png", "a run")
    sizes = [(tmp_path / name).stat().st_size for name in ("start.png", "long.png")]
    assert 1000 < sizes[0] < sizes[1]
