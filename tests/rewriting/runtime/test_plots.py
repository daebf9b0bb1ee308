"""Curves as a picture."""

from pathlib import Path

from rewriting.runtime.plots import plot_curves, reward_panels

PANELS = {"KL to the reference": ["kl_k1", "kl_k3"], "actions": ["share_insert", "share_keep"]}


def test_curves_of_a_short_and_a_long_run(tmp_path: Path) -> None:
    log = [{"step": 0, "dev/reward": 0.1}]
    plot_curves(log, tmp_path / "start.png", "nothing yet", PANELS)
    log += [
        {"step": n, "reward": n / 9, "rewards/a": 1.0, "share_keep": 0.5, "kl_k1": 0.1}
        for n in range(1, 40)
    ]
    plot_curves(log, tmp_path / "long.png", "a run", PANELS)
    sizes = [(tmp_path / name).stat().st_size for name in ("start.png", "long.png")]
    assert 1000 < sizes[0] < sizes[1]


def test_the_parts_of_a_term_share_a_panel(tmp_path: Path) -> None:
    row = {"step": 1.0, "reward": 0.5, "rewards/a": 1.0, "rewards/a/x": 0.4, "rewards/a/y": 0.6}
    row |= {"rewards/b": 0.0, "dev/rewards/a": 0.0, "dev/rewards/a/x": 0.0}
    assert reward_panels([row]) == {
        "a": ["rewards/a"],
        "a, by part": ["rewards/a/x", "rewards/a/y"],
        "b": ["rewards/b"],
    }
    plot_curves([row], tmp_path / "parts.png", "a run", PANELS)
    assert (tmp_path / "parts.png").is_file()
