"""A scored file with known effects in it, and others that it does not have."""

from __future__ import annotations

import json
from datetime import date, timedelta
from pathlib import Path

import numpy as np

PLANTED = {
    ("over time", "interpretations"),
    ("with experience", "emotional_reactions"),
    ("forum: night against others", "explorations"),
    ("outcome thanked", "interpretations"),
    ("appraisal Advice against others", "met"),
}
"""What is in the file. Empathy, the sum, moves with its parts; and groups of a column move apart
from "others" when one of them does."""
FORUMS = ("day", "night", "weekend")
LABELS = ("Pleasantness", "Certainty", "Advice")


def write_planted(path: Path, rows: int, seed: int = 0) -> None:
    """Replies of people who differ, over two years; with the effects named in PLANTED."""
    generator = np.random.default_rng(seed)
    people = max(30, rows // 40)
    person_N = generator.integers(people, size=rows)
    day_N = generator.integers(730, size=rows)
    order = np.lexsort((day_N, person_N))
    person_N, day_N = person_N[order], day_N[order]
    first_N = np.searchsorted(person_N, person_N)
    reply_N = np.arange(rows) - first_N + 1
    forum_N = generator.integers(3, size=rows)
    habit_P3 = generator.normal(0, 0.5, (people, 3))
    latent_N3 = habit_P3[person_N] + generator.normal(0, 1, (rows, 3))
    latent_N3[:, 1] += 0.6 * day_N / 730
    latent_N3[:, 0] -= 0.15 * np.log2(reply_N)
    latent_N3[:, 2] += 0.5 * (forum_N == 1)
    levels_N3 = (latent_N3 > 0.4).astype(int) + (latent_N3 > 1.2)
    thanked_N = generator.random(rows) < 0.2 + 0.06 * levels_N3[:, 1]
    label_N = generator.integers(3, size=rows)
    met_N = generator.random(rows) < np.array([0.5, 0.5, 0.35])[label_N]
    colour_N = generator.integers(2, size=rows)
    likes_N = generator.poisson(2, size=rows)
    with path.open("w", encoding="utf-8") as file:
        for n in generator.permutation(rows):
            row = {
                "id": str(n),
                "emotional_reactions": int(levels_N3[n, 0]),
                "interpretations": int(levels_N3[n, 1]),
                "explorations": int(levels_N3[n, 2]),
                "author": f"p{person_N[n]}",
                "created": str(date(2023, 1, 1) + timedelta(days=int(day_N[n]))),
                "forum": FORUMS[forum_N[n]],
                "colour": ("red", "blue")[colour_N[n]],
                "thanked": bool(thanked_N[n]),
                "likes": int(likes_N[n]),
                "appraisals": {LABELS[label_N[n]]: bool(met_N[n])},
            }
            file.write(json.dumps(row) + "\n")


def command(folder: Path) -> list[str]:
    flags = {"input": "scores.jsonl", "output": "insights.html", "json": "insights.json"}
    words = [word for name, file in flags.items() for word in (f"--{name}", str(folder / file))]
    columns = "--user author --time created --group forum --group colour --outcome thanked"
    return [*words, *columns.split(), "--outcome", "likes", "--appraisals", "appraisals"]
