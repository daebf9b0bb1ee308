"""`generic`: one kind sentence for everybody. The baseline that a rewriting agent has to beat.

PARTNER (arXiv 2101.07714) asks why not simply add "This must have been really hard for you" to
every response: because it is not specific, and because everybody says the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from rewriting import Edit, Exchange, Rewrite, apply_edits

SENTENCE = "This must have been really hard for you."


class GenericPolicy:
    """Inserts the same sentence at the front of every response. Ignores the seed."""

    def __init__(self, sentence: str = SENTENCE, name: str = "generic") -> None:
        self.name = name
        self.edit = Edit.insert(0, sentence)

    def rewrite(self, exchanges: Sequence[Exchange], *, seed: int) -> list[Rewrite]:
        return [
            Rewrite(exchange, apply_edits(exchange.response_post, [self.edit]), (self.edit,))
            for exchange in exchanges
        ]
