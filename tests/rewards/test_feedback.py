"""Feedback says what is there, what is missing, and nothing more at the top."""

from rewards.feedback import ADVICE, feedback_on
from rewards.identifiers.assessment import Assessment, Judgement
from rewriting.exchange import MECHANISMS
from rewriting.safety import check_output


def test_each_mechanism_gets_the_words_of_its_level() -> None:
    judgements = {
        "emotional_reactions": Judgement(0, (1, 0, 0)),
        "interpretations": Judgement(1, (0, 1, 0), ("I get it",)),
        "explorations": Judgement(2, (0, 0, 1), ("Why at night?",)),
    }
    notes = feedback_on(Assessment(judgements))
    assert [note.mechanism for note in notes] == list(MECHANISMS)
    assert [note.level for note in notes] == [0, 1, 2]
    assert notes[1].rationales == ("I get it",)
    assert notes[0].missing
    assert notes[1].example.startswith("Instead of")
    assert (notes[2].missing, notes[2].example) == ("", "")


def test_every_level_has_words() -> None:
    for advice in ADVICE.values():
        assert all(advice.found)
        assert all(advice.missing[:2])
        assert all(advice.example[:2])


def test_the_advice_of_feedback_passes_the_output_gate() -> None:
    texts = [
        text
        for advice in ADVICE.values()
        for text in (*advice.found, *advice.missing, *advice.example)
    ]
    assert len(texts) == 27
    assert [text for text in texts if not check_output(text).clear] == []
