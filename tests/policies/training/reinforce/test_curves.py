"""Curves as a picture."""

from pathlib import Path

from policies.training.reinforce.curves import plot_curves


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
