"""The gate: whether a machine may rewrite the reply to a post, and whether its text may be used.

It fails closed: what a user's classifier does not answer, or answers in a way that is no verdict,
counts as a crisis. A classifier can make a verdict graver, never lighter: the rules always hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rewriting.exchange import Exchange
from rewriting.safety.disguise import disguised
from rewriting.safety.outputs import check_output
from rewriting.safety.phrases import load_phrases
from rewriting.safety.spelling import folded, views
from rewriting.safety.verdict import LEVELS, Verdict, gravest

Classifier = Callable[[str], Any]
"""Text → a `Verdict`, or "clear", "possible", "crisis"."""

MAX_REASONS = 6
HELP = """If you or someone near you may be in danger, call your local emergency number now.
Find a free, confidential helpline in your country at https://findahelpline.com
Talk to someone you trust, or to a doctor. You do not have to go through this alone."""
"""No telephone number of one country: it is wrong in all others. `--help-text` names yours."""


def check_post(text: str, classifier: Classifier | None = None) -> Verdict:
    """What a post means: clear, possible or crisis, with the reasons."""
    verdict = check_rules(text)
    if classifier is None:
        return verdict
    return gravest(verdict, ask(classifier, text))


def check_rules(text: str) -> Verdict:
    """The verdict of the phrases alone: as the text stands, and as it may have been meant."""
    plain = folded(text)
    found = [
        Verdict(kind.verdict, (f'{kind.reason}: "{words}"',))
        for view in views(plain)
        for kind, words in load_phrases().found(view)
    ]
    if phrase := disguised(plain):
        found.append(Verdict("crisis", (f'explicit, in disguise: "{phrase}"',)))
    found.sort(key=lambda verdict: -LEVELS.index(verdict.verdict))
    verdict = gravest(*found)
    return Verdict(verdict.verdict, verdict.reasons[:MAX_REASONS])


def ask(classifier: Classifier, text: str) -> Verdict:
    """The classifier's verdict; a crisis where it fails or answers something else."""
    try:
        answer = classifier(text)
    except Exception as error:
        return Verdict("crisis", (f"the classifier failed: {type(error).__name__}: {error}",))
    if isinstance(answer, Verdict):
        return answer
    if isinstance(answer, str) and answer in LEVELS:
        return Verdict(answer, () if answer == "clear" else (f"classifier: {answer}",))
    return Verdict("crisis", (f"the classifier gave no verdict but {answer!r}",))


@dataclass(frozen=True, slots=True)
class Gate:
    """Both checks, with a user's classifier and help resources.

    classifier: a place, `path.py:function` or `module:function`, or the function itself.
    """

    classifier: Classifier | None = None
    help_text: str = HELP

    @classmethod
    def load(cls, classifier: str | Classifier | None = None, help_text: str = HELP) -> Gate:
        if isinstance(classifier, str):
            from rewriting.runtime.loading import load_function

            classifier = load_function(classifier)
        return cls(classifier, help_text)

    def check_post(self, text: str) -> Verdict:
        return check_post(text, self.classifier)

    def check_exchange(self, exchange: Exchange) -> Verdict:
        """The verdict on the seeker's post, the turns before it, and a crisis in the response."""
        verdicts = [self.check_post(text) for text in (exchange.seeker_post, *exchange.history)]
        response = self.check_post(exchange.response_post)
        if response.verdict == "crisis":
            reasons = tuple(f"in the response, {reason}" for reason in response.reasons)
            verdicts.append(Verdict("crisis", reasons))
        return gravest(*verdicts)

    def check_output(self, text: str, original: str = "") -> Verdict:
        """Whether a text of the machine may be used: clear, or crisis with what is wrong.

        A crisis that the text speaks of, and the reply it was made from did not, is wrong too; and
        so is a changed text that the user's classifier does not find clear, or cannot judge.
        """
        found = [check_output(text)]
        if text != original and check_rules(text).verdict == "crisis":
            found += [
                Verdict("crisis", (f"speaks of a crisis, {reason}",))
                for reason in check_rules(text).reasons
                if reason not in check_rules(original).reasons
            ]
        if text != original and self.classifier is not None:
            verdict = ask(self.classifier, text)
            if not verdict.clear:
                reasons = verdict.reasons or (f"classifier: {verdict.verdict}",)
                found.append(Verdict("crisis", reasons))
        return gravest(*found)
