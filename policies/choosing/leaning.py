"""Whether a sentence leans on the one before it: without that one it says nothing, or the wrong
thing.

"At least you have a mum who can help. Lots of people don't." With another first sentence, the
second one shames. So what a sentence leans on is not replaced.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

POINTING: Final = re.compile(
    r"""\W*(he|she|it|they|him|them|his|its|their|that|this|these|those|such|which|who|there|then
    |so|but|and|or|because|also|plus|either|neither|both|otherwise|instead|though|same|lots|many
    |most|some|others|another|one|none)\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""A first word that points back, or goes on with what was said."""
UNSAID_SUBJECT: Final = re.compile(
    r"""\W*(took|got|had|was|were|made|went|did|felt|worked|helped|cost|would|could|should|is|are
    |has|makes|helps|works|takes|(does|did|was|is)n['’]t)\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""A verb at the start of a statement whose subject stands in the sentence before."""


def leans(sentence: str) -> bool:
    """Whether a sentence points back with its first word, or leaves out whom it speaks of."""
    if POINTING.match(sentence):
        return True
    return bool(UNSAID_SUBJECT.match(sentence)) and not sentence.rstrip().endswith("?")


def leant_on(sentences: Sequence[str]) -> list[int]:
    """The places of the sentences that the next one leans on."""
    return [place for place, text in enumerate(sentences[1:]) if leans(text)]
