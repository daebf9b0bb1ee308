"""The safety gate: what must not be rewritten by a machine, and what a machine must not say.

`check_post` for what people write, `check_output` for what a machine writes, `Gate` for both with a
classifier of your own, `scrub` for personal data.
"""

from rewriting.safety.gate import HELP, Classifier, Gate, check_post
from rewriting.safety.outputs import check_output
from rewriting.safety.personal import scrub
from rewriting.safety.verdict import LEVELS, Level, Verdict, gravest

__all__ = [
    "HELP",
    "LEVELS",
    "Classifier",
    "Gate",
    "Level",
    "Verdict",
    "check_output",
    "check_post",
    "gravest",
    "scrub",
]
