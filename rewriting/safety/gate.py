"""The gate: whether a machine may rewrite the reply to a post, and whether its text may be used.

Rules, a learned reader and a user's classifier each give a verdict, and the gravest counts: reader
and classifier make a verdict graver, never lighter. One exception is written into the rules
themselves: a phrase that is marked there as weak, such as the bare word "overdose", does not count
where the reader finds the whole text benign. The gate fails closed: a reader or classifier
that fails, or answers in a way that is no verdict, counts as a crisis.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rewriting.errors import UserError
from rewriting.exchange import Exchange
from rewriting.safety.help import HELP
from rewriting.safety.outputs.check import check_output
from rewriting.safety.rules.check import MAX_REASONS, Ruled, check_rules, ruled
from rewriting.safety.verdict import CLEAR, LEVELS, Verdict, gravest

if TYPE_CHECKING:
    from rewriting.safety.reader.crisis_reader import CrisisReader

Classifier = Callable[[str], Any]
"""Text → a `Verdict`, or one of its levels: "clear", "unchecked", "possible", "crisis"."""

TURNS_TOGETHER = 3  # the last turns of a history that are read together with the post
METHOD: Final = "gives a method or encourages harm"
SURE_WORDS = 5  # a weak phrase in a shorter text counts whatever the reader says


def check_post(text: str, classifier: Classifier | None = None) -> Verdict:
    """What a post means by the rules alone, with the reasons: clear, unchecked, possible or crisis.

    The learned reader is not asked: it finds far more, and `Gate.load().check_post(text)` asks it.
    """
    return Gate(classifier).check_post(text)


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
    """Both checks, with a user's classifier, help resources and the learned reader.

    `Gate()` has the rules alone; `Gate.load()` has the reader too.
    """

    classifier: Classifier | None = None
    help_text: str = HELP
    reader: CrisisReader | None = None

    @classmethod
    def load(
        cls,
        classifier: str | Classifier | None = None,
        help_text: str = HELP,
        *,
        reader: bool = True,
    ) -> Gate:
        """The gate with the shipped reader.

        classifier: a place, `path.py:function` or `module:function`, or the function itself.
        reader: False leaves the rules alone, which need no model and miss far more.
        """
        if isinstance(classifier, str):
            from rewriting.runtime.loading import load_function

            classifier = load_function(classifier)
        return cls(classifier, help_text, load_reader() if reader else None)

    def check_post(self, text: str) -> Verdict:
        """The verdict of rules, reader and classifier on one text."""
        found = ruled(text)
        verdicts = [found.verdict] if self.reader is None else [read(self.reader, text, found)]
        if self.classifier is not None:
            verdicts.append(ask(self.classifier, text))
        return gravest(*verdicts)

    def check_exchange(self, exchange: Exchange) -> Verdict:
        """The verdict on the seeker's post, the turns before it, and a crisis in the response.

        Every turn counts by itself, and the last ones together with the post: a plan is sometimes
        told over several messages. The response is read by rules and classifier alone: the reader
        has learnt from posts, and takes blunt advice for despair.
        """
        post, history = exchange.seeker_post, exchange.history
        texts = [post, *history]
        if history:
            texts.append("\n".join((*history[-TURNS_TOGETHER:], post)))
        verdicts = [self.check_post(text) for text in dict.fromkeys(texts)]
        response = Gate(self.classifier).check_post(exchange.response_post)
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
        if original:
            found = [without_own_words(found[0], check_output(original))]
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


def without_own_words(verdict: Verdict, original: Verdict) -> Verdict:
    """A verdict on a text without what the reply that it was made from says too: that is a person's
    own. A method stays a method, whoever named it first."""
    own = {reason for reason in original.reasons if not reason.startswith(METHOD)}
    reasons = tuple(reason for reason in verdict.reasons if reason not in own)
    return Verdict(verdict.verdict, reasons) if reasons else Verdict("clear")


def read(reader: CrisisReader, text: str, found: Ruled) -> Verdict:
    """The verdict of rules and reader together; a crisis where the reader fails.

    Weak phrases count as possible, and not at all where the reader finds a text benign. Hints are
    nothing by themselves, and lower the bar of the reader.
    """
    try:
        reading = reader.read(text)
        judged = reader.judged(reading, len(found.hints))
        if judged.verdict == "possible" and reader.judged(reading).clear:
            judged = Verdict("possible", (*judged.reasons, *found.hints))
        benign = reading.probability < reader.bars.benign and len(text.split()) >= SURE_WORDS
    except Exception as error:
        reason = f"the crisis reader failed: {type(error).__name__}: {error}"
        return gravest(Verdict("crisis", (reason,)), found.verdict)
    weak = CLEAR if benign or found.weak.clear else Verdict("possible", found.weak.reasons)
    both = gravest(judged, found.firm, weak)
    return Verdict(both.verdict, both.reasons[:MAX_REASONS])


def load_reader() -> CrisisReader:
    """The shipped reader; a UserError where the model that it stands on is not there."""
    from rewriting.safety.reader.crisis_reader import CrisisReader

    try:
        return CrisisReader.shared()
    except UserError as error:
        raise UserError(
            f"the crisis reader cannot be loaded: {error} `rewriting models fetch` fetches the "
            "model that it needs."
        ) from error
