"""What a sentence takes for granted though nobody said it."""

import pytest

from rewriting.data import load_exchanges
from rewriting.safety.outputs.invented import invented


@pytest.mark.parametrize(
    ("sentence", "told", "found"),
    [
        ("How does your wife feel?", "My dog died.", ["your wife"]),
        ("How does your wife feel?", "We got divorced in May.", []),
        ("Your poor mum must be worried.", "My mother is ill.", []),
        ("What did his boss say?", "I lost my keys.", ["his boss"]),
        ("What did his boss say?", "He was fired on Friday.", []),
        ("Is there a sister you could ring?", "I lost my keys.", []),
        ("Losing your keys and then Martin too!", "I lost my keys.", ["Martin"]),
        ("Losing your keys and then Martin too!", "martin's gone, so are my keys", []),
        ("Your heart must be heavy.", "My dog died.", []),
    ],
)
def test_people_and_names_must_have_been_told_of(
    sentence: str, told: str, found: list[str]
) -> None:
    assert invented(sentence, told) == found


def test_sentences_that_people_wrote_rarely_raise_it() -> None:
    raised, count = 0, 0
    for exchange in load_exchanges("sample:rewrites_train"):
        told = f"{exchange.seeker_post}\n{exchange.response_post}"
        for edit in exchange.extra["edits"]:
            raised += bool(invented(edit["sentence"], told))
            count += 1
    assert count > 3000
    assert raised / count < 0.01
