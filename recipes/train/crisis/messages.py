"""The messages that `train.py crisis` learns from: the crisis corpus, ordinary posts, and copies of
both with the noise of hasty typing.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from recipes.shared.sources import labelled_lines
from rewriting.data.load import SAMPLE
from rewriting.safety.rules.spelling import folded, plain_words

KIND_OF_REGISTER = {
    **dict.fromkeys(
        ("explicit", "planned", "veiled", "resigned", "goodbye", "method_seeking"), "suicide"
    ),
    "self_harm": "self-harm",
    "third_person": "another person in danger",
    "psychosis": "psychosis",
    "violence_at_home": "violence at home",
    "sexual_abuse": "sexual abuse",
    "eating_disorder": "an eating disorder",
    "postpartum_harm": "harm to a baby or after birth",
    "overdose": "an overdose",
}
"""Registers that say what a crisis is about; the others say how it is told."""
PARTED = {"train": "seeker", "dev": "seeker", "calm": "ordinary", "everyday": "ordinary"}
PARTED |= {"fits_train": "seeker"}
LEARNT = dict.fromkeys(("clubs", "counter", "enquiries", "technical_support"), "ordinary")
LEARNT |= dict.fromkeys(("rewrites_train", "counterfactuals_train"), "seeker")
"""Bundled files of posts that are no crisis → their register. A seeker tells of plain trouble and
low mood; an ordinary post tells of nothing grave. Of the first files every other post is learnt."""
MIXED_WORDS = 60  # a message and an ordinary post have at most so many words together
LABELS = ("crisis", "benign")
WORD = re.compile(r"[a-z]{4,}", re.IGNORECASE)
SLIPS = ("missing", "doubled", "swapped")


@dataclass(frozen=True, slots=True)
class Message:
    """A message, whether it is a crisis, and in which register it is told."""

    text: str
    crisis: bool
    register: str
    language: str = "en"

    @property
    def kind(self) -> str:
        """What the crisis is about; '' where the register does not say it."""
        return KIND_OF_REGISTER.get(self.register, "") if self.crisis else ""


def messages(folder: str, part: str) -> list[Message]:
    """The messages of one part of the corpus as the reader gets them; a bad line is named."""
    needs = "`text` and `label`, crisis or benign"
    return labelled_lines(folder, f"crisis_{part}.jsonl", _message, needs)


def _message(row: Any) -> Message:
    if row["label"] not in LABELS:
        raise ValueError(f"label is {row['label']!r}")
    register, language = str(row.get("register", "")), str(row.get("language", "en"))
    return Message(str(row["text"]), row["label"] == "crisis", register, language)


def ordinary_posts() -> tuple[list[Message], list[Message]]:
    """Bundled posts that are no crisis: those to learn from, and those to choose bars by."""
    parted: dict[str, Message] = {}
    for name, register in PARTED.items():
        for post in bundled_posts(name):
            parted.setdefault(post, Message(post, False, register))
    learnt = dict(list(parted.items())[::2])
    kept = dict(list(parted.items())[1::2])
    for name, register in LEARNT.items():
        for post in bundled_posts(name):
            if post not in kept:
                learnt.setdefault(post, Message(post, False, register))
    return list(learnt.values()), list(kept.values())


def bundled_posts(name: str) -> list[str]:
    """The different posts of a bundled file, in order."""
    rows = map(json.loads, (SAMPLE / f"{name}.jsonl").read_text(encoding="utf-8").splitlines())
    posts = (post for row in rows for post in row.get("posts") or [row["seeker_post"]])
    return list(dict.fromkeys(posts))


def noisy_copies(rows: Sequence[Message], share: float, seed: int) -> list[Message]:
    """A share of the messages once more: with slips of the keyboard, or as plain words in a row."""
    dice = random.Random(seed)
    return [
        Message(noisy(row.text, dice), row.crisis, row.register)
        for row in rows
        if dice.random() < share
    ]


def mixed_copies(
    rows: Sequence[Message], ordinary: Sequence[Message], share: float, seed: int
) -> list[Message]:
    """A share of the messages once more, before or after an ordinary post: people tell both."""
    dice = random.Random(seed + 1)
    found = []
    for row in rows:
        if not ordinary or dice.random() >= share:
            continue
        texts = [row.text, dice.choice(ordinary).text]
        dice.shuffle(texts)
        if len(" ".join(texts).split()) <= MIXED_WORDS:
            found.append(Message(" ".join(texts), row.crisis, row.register))
    return found


def noisy(text: str, dice: random.Random) -> str:
    """A text as somebody types it in haste."""
    if dice.random() < 0.4:
        return plain_words(folded(text))
    rate = dice.choice((0.1, 0.2, 0.35))
    text = WORD.sub(lambda word: _slip(word[0], dice) if dice.random() < rate else word[0], text)
    return text.lower() if dice.random() < 0.5 else text


def _slip(word: str, dice: random.Random) -> str:
    """A word with one letter missing, doubled, or swapped with the next."""
    place = dice.randrange(1, len(word) - 1)
    middle = {
        "missing": "",
        "doubled": word[place] * 2,
        "swapped": word[place + 1] + word[place],
    }
    slip = dice.choice(SLIPS)
    return word[:place] + middle[slip] + word[place + (2 if slip == "swapped" else 1) :]
