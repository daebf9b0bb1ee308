"""The domain: exchanges, edits, rewrites, and the data they come from. Imports no torch."""

from rewriting.edits import Edit, Operation, apply_edits
from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS, Exchange, Label, Rewrite
from rewriting.sentences import Sentences, split_sentences

__all__ = [
    "MECHANISMS",
    "Edit",
    "Exchange",
    "Label",
    "Operation",
    "Rewrite",
    "Sentences",
    "UserError",
    "apply_edits",
    "split_sentences",
]
