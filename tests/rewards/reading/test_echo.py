import pytest

from rewards.reading.echo import echoed


@pytest.mark.parametrize(
    ("sentence", "share"),
    [
        ("You failed the test on Friday.", 1.0),  # in the second person
        ("I failed the test", 1.0),
        ("The test on Monday was hard.", 0.25),  # one of four triples
        ("That must sting.", 0.0),
        ("Why?", 0.0),
        ("", 0.0),
    ],
)
def test_the_share_of_triples_that_stand_in_the_post(sentence: str, share: float) -> None:
    assert echoed("I failed the test on Friday.", sentence) == pytest.approx(share)
