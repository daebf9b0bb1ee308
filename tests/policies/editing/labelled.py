"""Labelled exchanges to learn from: one of each strength."""

from rewriting import Exchange
from rewriting.exchange import MECHANISMS, Label


def exchange(seeker: str, response: str, **labels: tuple[int, str]) -> Exchange:
    found = {mechanism: Label(0) for mechanism in MECHANISMS}
    for short, (level, rationale) in labels.items():
        mechanism = next(name for name in MECHANISMS if name.startswith(short))
        found[mechanism] = Label(level, (rationale,))
    return Exchange(seeker, response, labels=found)


SORRY = exchange(
    "I failed.", "Oh well. I am so sorry for you. Try again.", emo=(2, "I am so sorry")
)
STRONG = exchange(
    "She left me.",
    "This must hurt a lot. I am so sorry for you. What did she say? Stay calm.",
    emo=(2, "I am so sorry for you."),
    int=(2, "This must hurt a lot."),
    exp=(1, "What did she say?"),
)
WEAK = exchange("What now?", "Just go to bed early. Why not? See www.x.org now. Go to bed.")
