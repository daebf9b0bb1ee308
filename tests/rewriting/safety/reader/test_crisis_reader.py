"""The crisis reader and the gate around it: windows, bars, what is graver, what fails closed."""

from pathlib import Path

import pytest
import torch

from rewriting import Exchange, UserError
from rewriting.safety import Gate, Verdict
from rewriting.safety.reader.crisis_reader import (
    KINDS,
    SETTINGS,
    WEIGHTS,
    Bars,
    CrisisReader,
    Reading,
)
from rewriting.safety.reader.windows import readings, windows
from tests.rewards.reading.tiny import in_half_precision, write_tiny_bert
from tests.rewriting.runtime.files.test_model_files import unsealed


def test_a_text_that_fits_is_one_window() -> None:
    assert windows("One. Two. Three.", size=3) == ["One. Two. Three."]
    assert windows("", size=3) == [""]


def test_windows_are_whole_sentences_and_overlap() -> None:
    text = "a b. c d. e f. g h. i j."
    assert windows(text, size=4) == ["a b. c d.", "c d. e f.", "e f. g h.", "g h. i j."]


def test_a_long_sentence_is_cut_and_no_word_is_lost() -> None:
    words = [f"w{number}" for number in range(103)]
    found = windows(" ".join(words), size=20)
    assert all(len(window.split()) <= 20 for window in found)
    assert list(dict.fromkeys(word for window in found for word in window.split())) == words


def test_tricks_are_read_as_they_were_meant() -> None:
    assert readings("I am sad.") == ["i am sad."]
    assert readings("k1ll mys3lf") == ["k1ll mys3lf", "kill myself"]
    assert readings("кill mуself") == ["kill myself"]


class Fake:
    """A reader that knows three words. Keeps what it was asked."""

    bars = Bars(possible=0.5, crisis=0.9, benign=0.1)
    judged = CrisisReader.judged

    def __init__(self) -> None:
        self.asked: list[str] = []

    def read(self, text: str) -> Reading:
        self.asked.append(text)
        known = {"grave": 0.95, "hm": 0.6, "unsure": 0.3}
        return Reading(
            max((p for word, p in known.items() if word in text), default=0.01), KINDS[1]
        )


def with_fake(bars: Bars | None = None) -> Gate:
    reader = Fake()
    reader.bars = bars or reader.bars
    return Gate(reader=reader)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a grave thing", Verdict("crisis", ("reads like a crisis: self-harm (0.95)",))),
        ("hm, a thing", Verdict("possible", ("may be a crisis: self-harm (0.60)",))),
        ("an unsure thing", Verdict("clear")),
        ("hm, I want to die", Verdict("crisis", ("may be a crisis: self-harm (0.60)",))),
        ("Hoy estoy muy triste.", Verdict("unchecked", ("not English: unchecked",))),
    ],
)
def test_the_reader_makes_a_verdict_graver_never_lighter(text: str, expected: Verdict) -> None:
    found = with_fake().check_post(text)
    assert found.verdict == expected.verdict
    assert set(expected.reasons) <= set(found.reasons)
    firm = Gate().check_post("I want to kill myself today, you know.")
    assert with_fake().check_post("I want to kill myself today, you know.") == firm


def test_a_weak_phrase_counts_unless_the_reader_is_sure() -> None:
    lecture = "My overdose was heavy going today, says the lecture."
    assert Gate().check_post(lecture).verdict == "crisis"
    assert with_fake().check_post(lecture).clear
    assert with_fake().check_post(f"{lecture} I am unsure.").verdict == "possible"
    assert with_fake().check_post("overdose").verdict == "possible"  # too short to be sure


def test_hints_lower_the_bar_of_the_reader_and_are_named() -> None:
    text = "an unsure thing, and my door has no lock"
    gate = with_fake(Bars(0.5, 0.9, 0.1, hinted=0.2))
    assert gate.check_post("an unsure thing").clear
    found = gate.check_post(text)
    assert found.verdict == "possible"
    assert found.reasons[-1].startswith('may be sexual abuse: "')
    assert with_fake().check_post(text).clear  # bars of readers that know of no hints
    twice = f"{text} and I flinch"
    strict = with_fake(Bars(0.5, 0.9, 0.1, hinted_twice=0.2))
    assert strict.check_post(text).clear
    assert strict.check_post(twice).verdict == "possible"


def test_a_reader_that_fails_is_a_crisis() -> None:
    class Broken(Fake):
        def read(self, text: str) -> Reading:
            raise RuntimeError("no memory")

    verdict = Gate(reader=Broken()).check_post("Hello.")  # type: ignore[arg-type]
    reason = "the crisis reader failed: RuntimeError: no memory"
    assert verdict == Verdict("crisis", (reason,))


def test_the_history_counts_turn_by_turn_and_together() -> None:
    gate = with_fake()
    assert gate.check_exchange(Exchange("ok", "Hi.", history=("a grave thing", "x"))).alarming
    turns = ("one", "two", "three", "four")
    gate.check_exchange(Exchange("five", "Hi.", history=turns))
    assert gate.reader is not None
    assert "two\nthree\nfour\nfive" in gate.reader.asked  # type: ignore[attr-defined]


def test_a_reply_is_read_by_the_rules_alone() -> None:
    """The reader has learnt from posts, and takes blunt advice for despair."""
    assert with_fake().check_exchange(Exchange("Hello.", "a grave reply")).clear
    found = with_fake().check_exchange(Exchange("Hello.", "I want to kill myself."))
    assert found.reasons == ('in the response, explicit: "kill myself"',)


def test_a_missing_model_is_a_user_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> CrisisReader:
        raise UserError("minilm-l6 is not there.")

    monkeypatch.setattr(CrisisReader, "shared", missing)
    with pytest.raises(UserError, match=r"minilm-l6 is not there.*rewriting models fetch"):
        Gate.load()
    assert Gate.load(reader=False).check_post("I want to die.").verdict == "crisis"


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_tiny_bert(tmp_path_factory.mktemp("crisis")))


def test_it_is_saved_and_loaded_with_bars_and_temperature(encoder: str, tmp_path: Path) -> None:
    bars = Bars(0.3, 0.8, 0.05)
    reader = in_half_precision(CrisisReader(encoder, 2, 32, temperature=2.0, bars=bars))
    before = reader.read("I am sad.")
    reader.save(tmp_path)
    loaded = CrisisReader.load(tmp_path)
    assert (loaded.bars, loaded.temperature) == (bars, 2.0)
    after = loaded.read("I am sad.")
    assert (after.kind, after.probability) == (before.kind, pytest.approx(before.probability))
    hotter = CrisisReader.load(tmp_path)
    hotter.temperature = 4.0
    assert abs(hotter.read("I am sad.").probability - 0.5) < abs(after.probability - 0.5)


def test_the_gravest_window_counts(encoder: str) -> None:
    reader = CrisisReader(encoder, 2, 32)
    text = " ".join(f"Sentence number {number} is here." for number in range(40))
    each = [reader.read(window).probability for window in windows(text.lower())]
    assert len(each) > 2
    assert reader.read(text).probability == pytest.approx(max(each), abs=1e-6)
    assert reader.read("  ").probability == 0.0


def test_a_folder_without_a_reader_or_with_another_one_is_one_line(
    encoder: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="holds no crisis reader"):
        CrisisReader.load(tmp_path)
    CrisisReader(encoder, 2, 32).save(tmp_path)
    unsealed(tmp_path / SETTINGS, rank=3)
    with pytest.raises(UserError, match="do not fit each other"):
        CrisisReader.load(tmp_path)
    assert (tmp_path / WEIGHTS).is_file()


def test_kinds_and_logits_have_their_shapes(encoder: str) -> None:
    logits_N, kinds_NK = CrisisReader(encoder, 2, 32)(["a", "b c"])
    assert (logits_N.shape, kinds_NK.shape) == (torch.Size([2]), torch.Size([2, len(KINDS)]))
