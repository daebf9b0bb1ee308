"""Good news or bad? The peer has read the post, and often says so: "Congrats!", "So sorry to hear".

An encoder that reads post and sentence together still takes a fifth driving test that was passed at
last for one that was failed again. The person who replied does not. So to somebody who is being
congratulated only glad sentences are lent, and to somebody who is being pitied none of those.
"""

from __future__ import annotations

import re
from typing import Final

CONGRATULATES: Final = re.compile(
    r"""\b(congrat\w*|well\ done|good\ job|nice\ (one|job|work)|good\ for\ you|way\ to\ go|bravo
    |proud\ of\ you|(so|really|very|truly)?\ *(happy|thrilled|delighted|pleased)\ for\ you
    |(great|good|amazing|wonderful|fantastic|brilliant|lovely)\ news|yay|hooray|hurrah|kudos
    |felicitations|mazel\ tov)\b""",
    re.IGNORECASE | re.VERBOSE,
)
PITIES: Final = re.compile(
    r"""\b(sorry\ (to\ (hear|read)|about|for\ (your|you)|you|that)|condolences?|that\ sucks
    |that['’]?s\ (so\ |really\ |just\ )?(awful|terrible|horrible|rough|tough|hard|sad|rotten))\b""",
    re.IGNORECASE | re.VERBOSE,
)
GLAD: Final = re.compile(
    r"""\b(happy|happiness|glad|joy\w*|overjoyed|delighted|thrilled|pleased|proud|congrat\w*
    |celebrat\w*|cheer\w*|smil\w*|beam\w*|wonderful|fantastic|brilliant|lovely|hooray|yay|well\ done
    |excited|chuffed|made\ my\ day)\b""",
    re.IGNORECASE | re.VERBOSE,
)


def suits(sentence: str, reply: str) -> bool:
    """Whether a sentence is glad where the reply congratulates, and is not where it pities."""
    congratulates, pities = bool(CONGRATULATES.search(reply)), bool(PITIES.search(reply))
    if congratulates == pities:  # neither, or both: nothing is known
        return True
    return bool(GLAD.search(sentence)) == congratulates
