"""What a grounded identifier pays for, with a reader by hand, and its folder."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from rewards.identifiers.assessment import Assessment
from rewards.identifiers.grounded.identifier import GroundedIdentifier
from rewards.identifiers.in_context.gate import read_settings
from rewards.identifiers.named import DEFAULT_IDENTIFIER, NAMES, is_grounded, load_identifier
from rewards.named import Models
from rewards.reading.reader import SETTINGS, SentenceReader
from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS
from tests.rewards.fakes import ODD_TEXTS
from tests.rewards.identifiers.fake_reader import SURE, FakeReader, by_form
from tests.rewards.reading.tiny import in_half_precision, write_tiny_bert
from tests.rewriting.runtime.files.test_model_files import unsealed

POST = "I failed."
HIGH, LOW = 1 / (1 + math.exp(-SURE)), 1 / (1 + math.exp(SURE))
GATE = 1 / (1 + math.exp(-5.0))


@pytest.fixture
def identifier() -> GroundedIdentifier:
    return GroundedIdentifier(FakeReader(), by_form())  # type: ignore[arg-type]


def assess(identifier: GroundedIdentifier, response: str, post: str = POST) -> Assessment:
    (found,) = identifier.assess([post], [response])
    return found


def levels(assessment: Assessment) -> list[int]:
    return [assessment.judgements[mechanism].level for mechanism in MECHANISMS]


def test_levels_probabilities_and_rationales_by_hand(identifier: GroundedIdentifier) -> None:
    found = assess(identifier, "I am so sorry. Take a walk. But why?")
    assert levels(found) == [2, 0, 1]
    some, none = HIGH * GATE, LOW * GATE
    reaction = found.judgements["emotional_reactions"]
    assert reaction.probabilities == pytest.approx((1 - some, some * LOW, some * HIGH))
    assert reaction.rationales == ("I am so sorry.",)
    exploration = found.judgements["explorations"]
    assert exploration.probabilities == pytest.approx((1 - some, some * HIGH, some * LOW))
    assert exploration.rationales == ("But why?",)
    # Nobody interprets; the best of three bad sentences is the one that is strong in form.
    interpretation = found.judgements["interpretations"]
    assert interpretation.probabilities == pytest.approx((1 - none, none * LOW, none * HIGH))
    assert interpretation.rationales == ()


def test_a_third_question_adds_nothing(identifier: GroundedIdentifier) -> None:
    one = assess(identifier, "So why now?")
    three = assess(identifier, "So why now? And why here? And so why you?")
    assert levels(one) == levels(three) == [0, 0, 2]
    assert three.expected_empathy == pytest.approx(one.expected_empathy)


def test_the_same_kindness_twice_counts_once(identifier: GroundedIdentifier) -> None:
    once, twice = (assess(identifier, text) for text in ("I am sorry.", "I am sorry. I am sorry."))
    assert levels(once) == levels(twice) == [1, 0, 0]
    assert twice.expected_empathy == once.expected_empathy
    assert twice.judgements["emotional_reactions"].rationales == ("I am sorry.",) * 2


def test_the_best_sentence_counts_wherever_it_stands(identifier: GroundedIdentifier) -> None:
    texts = ("I am so sorry. I am sorry.", "I am sorry. I am so sorry.")
    first, last = (assess(identifier, text) for text in texts)
    assert first.expected_empathy == last.expected_empathy
    assert levels(first) == levels(last) == [2, 0, 0]


def test_a_sentence_more_never_takes_away(identifier: GroundedIdentifier) -> None:
    alone = assess(identifier, "I am so sorry.")
    more = assess(identifier, "I am so sorry. Take a walk.")
    assert more.expected_empathy >= alone.expected_empathy


def test_an_empty_response_shows_nothing(identifier: GroundedIdentifier) -> None:
    found = identifier.assess([POST] * 3, ["", "I am so sorry.", " \n"])
    assert [levels(one) for one in found] == [[0, 0, 0], [2, 0, 0], [0, 0, 0]]
    assert found[0].expected_empathy == found[2].expected_empathy == 0.0


def test_nothing_but_empty_responses(identifier: GroundedIdentifier) -> None:
    (found,) = identifier.assess([POST], [""])
    assert (levels(found), found.expected_empathy) == ([0, 0, 0], 0.0)
    assert identifier.assess([], []) == []


def test_a_calm_post_gets_level_0(identifier: GroundedIdentifier) -> None:
    found = assess(identifier, "I am so sorry. So why?", post="A calm day.")
    assert levels(found) == [0, 0, 0]
    assert all(not judgement.rationales for judgement in found.judgements.values())
    troubled = assess(identifier, "I am so sorry. So why?")
    assert found.expected_empathy < 0.01 * troubled.expected_empathy


def test_the_bar_of_need_is_sharp_for_levels_and_soft_for_rewards() -> None:
    """Need is 5: just below a bar of 5.5, its gate still lets 0.38 through, above a bar of 0.3."""
    grounding = replace(by_form(), need_bar=5.5, some_bars=(0.3,) * 3)
    found = assess(GroundedIdentifier(FakeReader(), grounding), "I am so sorry.")  # type: ignore[arg-type]
    assert levels(found) == [0, 0, 0]
    some = HIGH / (1 + math.exp(0.5))
    assert found.judgements["emotional_reactions"].probabilities[0] == pytest.approx(1 - some)
    above = replace(grounding, need_bar=4.9)
    found = assess(GroundedIdentifier(FakeReader(), above), "I am so sorry.")  # type: ignore[arg-type]
    assert levels(found) == [2, 0, 0]


def test_rationales_can_be_left_out(identifier: GroundedIdentifier) -> None:
    (found,) = identifier.assess([POST], ["I am so sorry."], rationales=False)
    assert levels(found) == [2, 0, 0]
    assert all(not judgement.rationales for judgement in found.judgements.values())


def test_each_sentence_is_read_under_its_own_post(identifier: GroundedIdentifier) -> None:
    identifier.assess(["One.", "Two."], ["I see. Why?", "Sorry!"])
    asked = identifier.reader.asked  # type: ignore[attr-defined]
    assert [pair for pair in asked if pair[1]] == [
        ("One.", "I see."),
        ("One.", "Why?"),
        ("Two.", "Sorry!"),
    ]
    with pytest.raises(ValueError, match="zip"):
        identifier.assess(["One."], ["I see.", "Why?"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("grounded")
    reader = SentenceReader(str(write_tiny_bert(path / "encoder")), rank=2, max_tokens=48)
    in_half_precision(reader).eval().set_banks(["My dog died.", "I cry."], ["Hi."])
    reader.save(path / "model", grounding=by_form().as_json())
    return path / "model"


def test_a_folder_by_its_name(folder: Path) -> None:
    identifier = load_identifier(str(folder))
    assert isinstance(identifier, GroundedIdentifier)
    assert identifier.grounding == by_form()
    expected = GroundedIdentifier(SentenceReader.load(folder), by_form()).assess([POST], ["Why?"])
    assert identifier.assess([POST], ["Why?"]) == expected
    # The term `contrast` needs no second reader beside this identifier.
    assert Models(identifier=identifier).reader is identifier.reader


def test_any_text_in_any_company(folder: Path) -> None:
    identifier = GroundedIdentifier.load(folder)
    texts = [text[:500] for text in ODD_TEXTS] + ["I am so sorry. Why?"]
    together = identifier.assess(texts, texts[::-1])
    alone = [identifier.assess([a], [b])[0] for a, b in zip(texts, texts[::-1], strict=True)]
    for a, b in zip(together, alone, strict=True):
        assert levels(a) == levels(b)
        assert a.expected_empathy == pytest.approx(b.expected_empathy, abs=1e-4)
        for judgement in a.judgements.values():
            assert sum(judgement.probabilities) == pytest.approx(1.0)
            assert min(judgement.probabilities) >= 0


def test_mistakes_are_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no reader"):
        GroundedIdentifier.load(tmp_path)
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    unsealed(tmp_path / SETTINGS)
    settings = json.loads((tmp_path / SETTINGS).read_text())
    del settings["grounding"]
    (tmp_path / SETTINGS).write_text(json.dumps(settings))
    with pytest.raises(UserError, match="no levels were fitted"):
        GroundedIdentifier.load(tmp_path)


def test_joint_is_inside_the_default() -> None:
    assert DEFAULT_IDENTIFIER == "in-context"
    assert read_settings(NAMES["in-context"])["identifier"] == "joint"
    assert not is_grounded(None)
    assert is_grounded("grounded")
    assert not is_grounded("epitome")
    assert not is_grounded("judge:some-model")
    assert NAMES["grounded"].name == "reader"
    assert NAMES["epitome"].name == "identifier"
