"""Who responds, and what came of it: the systems of `evaluate.py responses` and their figures."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recipes.shared.systems import CHUNK, ORIGINAL, check_system, rewrites_of
from rewriting import Exchange, Rewrite
from rewriting.exchange import LEVELS, MECHANISMS
from rewriting.measures.measure import figures_of
from rewriting.measures.responses import (
    RESPONSE_MEASURES,
    Response,
    Responses,
    emp_f1_intervals,
)

if TYPE_CHECKING:
    from policies.generating.generator import Generator
    from rewards.identifiers.assessment import Assessment
    from rewards.named import Models

HUMAN = "human"
BARE = "model:"


class Writers:
    """Systems by name. temperature, top_p: of all generators; 0 leaves each policy its own."""

    def __init__(self, temperature: float = 0.0, top_p: float = 0.0) -> None:
        from policies.generating.settings import GeneratorSettings

        given = {"temperature": temperature, "top_p": top_p}
        self.decoding: dict[str, Any] = {name: value for name, value in given.items() if value}
        GeneratorSettings(**self.decoding)  # which knows what is wrong with them

    def check(self, source: str) -> None:
        """Refuse a system that does not exist, before anything is loaded."""
        if source.startswith(BARE):
            from rewriting.runtime.models.named import kind_of

            kind_of(source.removeprefix(BARE))  # which knows what is wrong with the name
        else:
            check_system(ORIGINAL if source == HUMAN else source)

    def responses(self, source: str, exchanges: Sequence[Exchange], *, seed: int) -> list[str]:
        """What a system answers to the seeker posts, after their histories."""
        generator = self._generator(source)
        if generator is None:
            source = ORIGINAL if source == HUMAN else source
            made: list[Rewrite] = rewrites_of(source, exchanges, seed=seed)
            return [one.rewritten_response for one in made]
        from rewriting.runtime.progress import progress_bar

        found: list[str] = []
        with progress_bar(f"responding with {generator.name}", len(exchanges)) as advance:
            for start in range(0, len(exchanges), CHUNK):
                chunk = exchanges[start : start + CHUNK]
                found += generator.respond(chunk, seed=seed)
                advance(len(chunk))
        return found

    def _generator(self, source: str) -> Generator | None:
        """The generator of that name, with the decoding that was asked for; None: no generator."""
        from policies.generating.generator import Generator
        from policies.generating.settings import KIND
        from policies.named import policy_kind, trained_folder

        if source.startswith(BARE):
            model = source.removeprefix(BARE)
            return Generator.create(model, adapter="none", name=model, **self.decoding)
        folder = trained_folder(source)
        if folder is None or policy_kind(folder) != KIND:
            return None
        name = "" if Path(source).expanduser().is_dir() else source
        return Generator.load(folder, name=name, **self.decoding)


def measured(
    made: Mapping[str, Sequence[str]], exchanges: Sequence[Exchange], models: Models
) -> dict[str, list[Response]]:
    """Every response with what the identifier and the judge say of it; equal ones are asked once.

    A system whose responses are the human ones is scored like any other: Emp-F1 100 says that the
    identifier judges the same text alike.
    """
    from recipes.shared.outcomes import Assessor
    from rewards.terms.fluency import Perplexity

    assess = Assessor(models.identifier, rationales=False)
    judge = Perplexity(models.language_model)
    seekers = [exchange.seeker_post for exchange in exchanges]
    human = assess(list(zip(seekers, (e.response_post for e in exchanges), strict=True)))
    found: dict[str, list[Response]] = {}
    for name, responses in made.items():
        generated = assess(list(zip(seekers, responses, strict=True)))
        perplexity = _in_chunks(judge, responses, f"perplexity of {name}")
        found[name] = [
            Response(exchange, response, _levels(before), _levels(after), surprise)
            for exchange, response, before, after, surprise in zip(
                exchanges, responses, human, generated, perplexity, strict=True
            )
        ]
    return found


def _in_chunks(judge: Any, texts: Sequence[str], title: str) -> list[float]:
    from rewriting.runtime.progress import progress_bar

    found: list[float] = []
    with progress_bar(title, len(texts)) as advance:
        for start in range(0, len(texts), CHUNK):
            chunk = texts[start : start + CHUNK]
            found += judge(completions=chunk)
            advance(len(chunk))
    return found


def _levels(assessment: Assessment) -> dict[str, int]:
    return {mechanism: assessment.judgements[mechanism].level for mechanism in MECHANISMS}


def summary(outcomes: Mapping[str, Sequence[Response]], *, seed: int = 0) -> dict[str, Any]:
    """The figures of every system; with two or more, the difference in Emp-F1 to the first."""
    tables = {name: Responses(rows, seed) for name, rows in outcomes.items()}
    figures = {name: system_figures(table) for name, table in tables.items()}
    first, *others = tables
    for name in others:
        own, base = tables[name], tables[first]
        bounds = emp_f1_intervals(
            own.human, own.generated, own.groups, against=base.generated, seed=seed
        )
        figures[name]["emp_f1_difference"] = {
            "to": first,
            "value": figures[name]["emp_f1"] - figures[first]["emp_f1"],
            "interval": bounds["emp_f1"],
        }
    return figures


def system_figures(table: Responses) -> dict[str, Any]:
    """The figures of one system, and under `intervals` where they lie with 95 %."""
    figures, intervals = figures_of(RESPONSE_MEASURES, table)
    levels = table.generated
    shares = {m: [levels[m].count(lv) / len(table.rows) for lv in LEVELS] for m in MECHANISMS}
    return {
        **figures,
        "level_shares": shares,
        "by_emotion": by_emotion(table.rows),
        "intervals": intervals,
    }


def by_emotion(rows: Sequence[Response]) -> dict[str, dict[str, float]]:
    """Emotion of the data set → Emp-F1, its parts, n. Does the reward serve some worse?"""
    groups: dict[str, list[Response]] = defaultdict(list)
    for one in rows:
        if one.exchange.extra.get("emotion"):
            groups[str(one.exchange.extra["emotion"])].append(one)
    return {name: Responses(own).emp_f1 | {"n": len(own)} for name, own in sorted(groups.items())}


def write_outputs(path: Path, rows: Sequence[Response]) -> None:
    """The responses of a system, a JSON line each: `--systems NAME=FILE` reads them again."""
    from rewriting.runtime.files.disk import disk_errors

    lines = [
        json.dumps(
            {
                "id": one.exchange.id,
                "seeker_post": one.exchange.seeker_post,
                "response_post": one.exchange.response_post,
                "rewritten_response": one.response,
                "levels": one.generated,
                "human_levels": one.human,
                "perplexity": one.perplexity,
            },
            ensure_ascii=False,
        )
        for one in rows
    ]
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
