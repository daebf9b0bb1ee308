# empathic-rewriting: this line says whose the package is (rewriting/distribution.py reads it).
"""The domain: exchanges, edits, rewrites, and the data they come from. Imports no torch."""

from rewriting.edits import Edit, Operation, apply_edits
from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS, Exchange, Label, Rewrite
from rewriting.sentences import Sentences, split_sentences

__version__ = "0.2.0"

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
