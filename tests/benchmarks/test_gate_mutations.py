"""A small run of benchmarks/gate_mutations.py: hardly a mutation gets past the rules."""

import random
import runpy

from tests.benchmarks.scripts import ROOT

POSTS = [
    ("Last night I wanted to kill myself again.", "kill myself"),
    ("my brother says suicide is all he thinks about", "suicide"),
]


def test_mutations_of_telling_words_are_read() -> None:
    script = runpy.run_path(str(ROOT / "benchmarks" / "gate_mutations.py"))
    assert [script["telling_words"](post) for post, _ in POSTS] == [words for _, words in POSTS]
    assert script["telling_words"]("Lovely weather today.") is None
    found = script["measure"](POSTS, 60, 18)
    assert found["passed"] == []
    assert found["mutations"] == 60
    assert found["milliseconds"] > 0


def test_only_the_telling_words_are_changed_and_a_seed_repeats_itself() -> None:
    script = runpy.run_path(str(ROOT / "benchmarks" / "gate_mutations.py"))
    once, again = (script["mutation"](*POSTS[0], random.Random(3)) for _ in range(2))
    assert once == again != POSTS[0][0]
    assert once.startswith("Last night I wanted to ")
    assert once.endswith(" again.")


def test_what_passes_is_counted() -> None:
    script = runpy.run_path(str(ROOT / "benchmarks" / "gate_mutations.py"))
    found = script["measure"]([("Lovely weather today.", "weather")], 4, 0)
    assert (len(found["passed"]), found["share"]) == (4, 1.0)
