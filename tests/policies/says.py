"""Exchanges for the safety gate, and a policy that says what it is told to."""

from collections.abc import Sequence

from rewriting import Edit, Exchange, Rewrite

CRISIS = Exchange("I want to kill myself.", "Try again.", id="1")
VEILED = Exchange("I can't do this anymore. Goodbye.", "Rest.", id="2")
CLEAR = Exchange("I failed the exam.", "Try again.", id="3")


class Says:
    """Puts a sentence in front that the seed decides on; keeps whom it was asked for."""

    name = "says"

    def __init__(self, **sentences: str) -> None:
        self.sentences = sentences
        self.calls: list[tuple[int, list[str]]] = []

    def rewrite(self, exchanges: Sequence[Exchange], *, seed: int) -> list[Rewrite]:
        self.calls.append((seed, [one.id for one in exchanges]))
        sentence = self.sentences.get(f"at{len(self.calls)}", "I am so sorry.")
        edit = Edit.insert(0, sentence)
        return [Rewrite(one, f"{sentence} {one.response_post}", (edit,)) for one in exchanges]
