"""What a run came to, from rows made by hand."""

from rewriting.report.run_summary import Change, changes, run_summary

ROWS = [
    {"step": 0, "dev/reward": 1.0, "dev/words": 5.0},
    {"step": 1, "reward": 1.0, "loss": 4.0, "rate": 0.1, "seconds_update": 1.0},
    {"step": 2, "reward": 3.0, "loss": 3.0, "rate": 0.1, "seconds_update": 2.0},
    {"step": 3, "reward": 2.0, "loss": 3.0, "rate": 0.1, "dev/reward": 3.0, "dev/words": 1.0},
    {"step": 4, "reward": 2.0, "loss": 2.0, "rate": 0.1},
    {"step": 5, "reward": 2.0, "loss": 2.0, "rate": 0.1},
    {"step": 6, "reward": 2.0, "loss": 2.0, "rate": 0.1},
    {"step": 7, "reward": 4.0, "loss": 1.0, "rate": 0.1},
    {"step": 8, "reward": 6.0, "loss": 1.0, "rate": 0.0, "dev/reward": 2.5, "dev/words": 5.0},
]


def test_measurements_are_compared_first_to_last_and_steps_by_quarters() -> None:
    assert changes(ROWS) == [
        Change("dev/reward", 1.0, 2.5),
        Change("dev/words", 5.0, 5.0),
        Change("reward", 2.0, 5.0),  # the means of 1, 3 and of 4, 6
        Change("loss", 3.5, 1.0),
    ]


def test_the_text_says_what_rose_fell_and_held() -> None:
    assert run_summary(ROWS, "partner") == [
        "partner: 8 steps",
        "  rose  dev/reward                      1 → 2.5",
        "        reward                          2 → 5",
        "  fell  loss                            3.5 → 1",
        "  held  dev/words",
    ]


def test_a_small_change_held_and_nan_is_no_figure() -> None:
    rows = [{"step": n, "kl": value} for n, value in enumerate((1.0, float("nan"), 1.009), 1)]
    assert changes(rows) == [Change("kl", 1.0, 1.009)]
    assert changes(rows)[0].held
    assert not Change("kl", 1.0, 1.02).held
    assert not Change("kl", -1.0, 1.0).held
    assert Change("kl", 0.0, 0.0).held


def test_what_is_measured_rarely_is_compared_first_to_last() -> None:
    rows = [{"step": n, "loss": 1.0} | ({"eval": float(n)} if n % 4 == 1 else {}) for n in range(9)]
    assert Change("eval", 1.0, 5.0) in changes(rows)


def test_long_logs_are_cut_and_short_ones_said() -> None:
    rows = [{"step": n} | {f"figure{k}": float(n * (k + 1)) for k in range(11)} for n in (1, 2)]
    text = run_summary(rows, "run")
    assert len(text) == 1 + 8 + 1
    assert text[-1].strip() == "and 3 more in the log"
    assert run_summary(rows[:1], "run") == [
        "run: 1 step",
        "  too few to compare their beginning with their end",
    ]
    assert run_summary([], "run") == []


def test_a_long_name_stays_apart_from_its_values() -> None:
    name = "dev/rewards/empathy_change/interpretations"
    rows = [{"step": n, name: float(n)} for n in (1, 2)]
    assert run_summary(rows, "run")[1] == f"  rose  {name} 1 → 2"
