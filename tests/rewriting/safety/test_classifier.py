"""A classifier of one's own makes a verdict graver and never lighter."""

from pathlib import Path

import pytest

from rewriting import UserError
from rewriting.safety import Gate, Verdict, check_post


def fails(text: str) -> str:
    raise RuntimeError("no GPU")


def test_a_classifier_makes_a_verdict_graver_never_lighter() -> None:
    assert check_post("Hello.", lambda text: "possible").verdict == "possible"
    assert check_post("Hello.", lambda text: Verdict("crisis", ("mine",))).reasons == ("mine",)
    assert check_post("I want to die.", lambda text: "clear").verdict == "crisis"
    assert check_post("Hello.", lambda text: "clear") == Verdict("clear")


@pytest.mark.parametrize("answer", [None, 0.2, "fine", True, ["clear"]])
def test_an_answer_that_is_no_verdict_is_a_crisis(answer: object) -> None:
    verdict = check_post("Hello.", lambda text: answer)
    assert verdict.verdict == "crisis"
    assert repr(answer) in verdict.reasons[0]


def test_an_exception_in_the_classifier_is_a_crisis() -> None:
    reason = "the classifier failed: RuntimeError: no GPU"
    assert check_post("Hello.", fails) == Verdict("crisis", (reason,))


def test_a_classifier_is_loaded_by_its_place(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "def sad(text):\n    return 'crisis' if 'sad' in text else 'clear'\n"
    )
    gate = Gate.load(f"{tmp_path / 'mine.py'}:sad")
    assert [gate.check_post(text).verdict for text in ("so sad", "fine")] == ["crisis", "clear"]
    with pytest.raises(UserError, match="no function 'glad'"):
        Gate.load(f"{tmp_path / 'mine.py'}:glad")


def test_a_classifier_is_asked_about_a_changed_output_too() -> None:
    def wary(text: str) -> str:
        return "possible" if "hm" in text else "clear"

    gate = Gate(wary)
    assert gate.check_output("I am so sorry.", "Try again.").clear
    assert gate.check_output("hm", "hm").clear
    expected = Verdict("crisis", ("classifier: possible",))
    assert gate.check_output("hm, well", "Try again.") == expected
    silent = Gate(lambda text: Verdict("possible"))
    assert silent.check_output("Well.", "Try again.") == expected
    failed = Gate(fails).check_output("Well.", "Try again.")
    assert failed == Verdict("crisis", ("the classifier failed: RuntimeError: no GPU",))
    assert not Gate(lambda text: None).check_output("Well.", "Try again.").clear
