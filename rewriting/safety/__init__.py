"""The safety gate: what must not be rewritten by a machine, and what a machine must not say.

`Gate.load()` for what people write and for what a machine writes, with the learned reader and a
classifier of your own; `check_post` and `check_output` are its rules alone; `scrub` for personal
data.
"""

from rewriting.safety.gate import Classifier, Gate, check_post
from rewriting.safety.help import HELP
from rewriting.safety.outputs.check import check_output
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
