"""What a machine must not say to somebody in need: methods, diagnoses, medication advice, insults.

Rules of words again (`outputs.toml`). They look at a text alone, not at what it answers: a reply
that asks "Are you depressed?" passes, one that says "You are depressed" does not.
"""

from __future__ import annotations

from pathlib import Path

from rewriting.safety.rules.phrases import load_phrases
from rewriting.safety.rules.spelling import folded, views
from rewriting.safety.verdict import Verdict, gravest

FILE = Path(__file__).parent / "outputs.toml"


def check_output(text: str) -> Verdict:
    """clear, or crisis with what is wrong with the text: it is not to be used."""
    found = (
        Verdict(one.kind.verdict, (f'{one.kind.reason}: "{one.words}"',))
        for view in views(folded(text))
        for one in load_phrases(FILE).found(view)
    )
    return gravest(*found)
