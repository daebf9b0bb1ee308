"""Tickets cannot be made up, and guessing is limited."""

import pytest

from rewriting.ab.server.tokens import Guesses, new_token, read_ticket, token_hash, write_ticket


def test_tokens_are_long_and_never_the_same() -> None:
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert all(len(token) >= 32 for token in tokens)
    assert token_hash("a") != token_hash("b")


def test_a_ticket_is_for_one_rater_one_item_and_one_study() -> None:
    text = write_ticket("secret", 1, "item")
    ticket = read_ticket(text, "secret", 1, "item")
    assert ticket
    assert len(ticket.number) == 16
    assert read_ticket(text, "secret", 2, "item") is None
    assert read_ticket(text, "secret", 1, "other") is None
    assert read_ticket(text, "other", 1, "item") is None


@pytest.mark.parametrize("text", ["", "-", "--", "a-b-c", "é-1-2", "\ud800-1-2"])
def test_what_is_no_ticket_is_none(text: str) -> None:
    assert read_ticket(text, "secret", 1, "item") is None


def test_an_earlier_time_breaks_the_signature() -> None:
    number, shown, signature = write_ticket("secret", 1, "item").split("-")
    earlier = f"{number}-{int(shown, 16) - 60_000:x}-{signature}"
    assert read_ticket(earlier, "secret", 1, "item") is None


def test_wrong_tokens_are_limited_per_address_for_a_while() -> None:
    clock = [0.0]
    guesses = Guesses(limit=3, seconds=60, clock=lambda: clock[0])
    guesses.right("here", "good")
    for _ in range(3):
        assert not guesses.refused("here", "bad")
        guesses.wrong("here", "bad")
    assert guesses.refused("here", "bad")
    assert guesses.refused("here", "another, perhaps right")
    assert not guesses.refused("here", "good"), "a link that worked goes on working"
    assert not guesses.refused("there", "bad")
    clock[0] = 60.0
    assert not guesses.refused("here", "bad")


def test_memory_for_addresses_is_bounded() -> None:
    guesses = Guesses(remembered=5)
    for number in range(50):
        guesses.wrong(f"address {number}", "bad")
        guesses.right(f"address {number}", "good")
    assert len(guesses._wrong) == len(guesses._known) == 5
