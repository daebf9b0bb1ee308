"""The gate of a command: its flags, and the models that read new sentences with it."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rewriting import UserError

if TYPE_CHECKING:
    from policies.gated import Guard
    from rewriting.safety.gate import Classifier

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Safety:
    """How the gate is set, as a command's flags say it.

    classifier: `path.py:function` or `module:function`; from Python the function itself as well.
    """

    classifier: str | Classifier | None = None
    help_text: str | None = None
    allow_crisis: bool = False

    def guard(self) -> Guard:
        from policies.gated import Guard
        from rewards.reading.sense_model import SenseModel
        from rewards.terms.kindness import KindnessModel
        from rewriting.safety import Gate

        if self.allow_crisis:
            logger.warning("--allow-crisis: posts that may be a crisis are rewritten by a machine.")
        gate = Gate.load(self.classifier, read_help(self.help_text))
        return Guard(gate, KindnessModel.shared(), SenseModel.shared(), self.allow_crisis)


def read_help(path: str | None) -> str:
    """The help resources of a user's file, or ours."""
    if path is None:
        from rewriting.safety import HELP

        return HELP
    try:
        text = Path(path).expanduser().read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"--help-text {path}: cannot be read ({error}).") from error
    if not text:
        raise UserError(f"--help-text {path}: the file is empty; write whom to call in it.")
    return text
