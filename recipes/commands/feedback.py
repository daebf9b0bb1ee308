"""`rewriting feedback`: tell a peer supporter what a reply shows and what is missing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from recipes.shared.flags.checks import check_identifier
from recipes.shared.flags.dialect import examples
from recipes.shared.flags.options import IdentifierName
from recipes.shared.rows import feedback_row
from rewriting.errors import UserError

if TYPE_CHECKING:
    from rich.text import Text

    from rewards.feedback import Feedback

COLOURS = {
    "emotional_reactions": "magenta",
    "interpretations": "cyan",
    "explorations": "yellow",
}
EPILOG = examples(
    'rewriting feedback --seeker "My exam is tomorrow and I can\'t sleep."'
    ' --response "Everything will be fine. What are you most afraid of?"',
)


def feedback(
    seeker: Annotated[str, typer.Option(help="The seeker's post.")],
    response: Annotated[str, typer.Option(help="The reply to give feedback on.")],
    model: IdentifierName = "in-context",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Feedback on one reply: per mechanism its level, where it shows, what is missing."""
    if not seeker.strip() or not response.strip():
        raise UserError("--seeker and --response each need a text.")
    check_identifier(model)
    from rewards.feedback import feedback_on
    from rewards.identifiers.named import load_identifier

    (assessment,) = load_identifier(model).assess([seeker], [response])
    if as_json:
        print(json.dumps(feedback_row(assessment), ensure_ascii=False, indent=2))
    else:
        show(response, assessment.empathy, feedback_on(assessment))


def show(response: str, empathy: int, notes: list[Feedback]) -> None:
    """The reply with its rationales in colour, then a paragraph per mechanism."""
    from rich.console import Console
    from rich.panel import Panel
    from rich.text import Text

    console = Console()
    console.print(Panel(coloured(response, notes), title=f"empathy {empathy} of 6"))
    for note in notes:
        colour = COLOURS[note.mechanism]
        console.print(Text(f"{note.title} · level {note.level} of 2", style=f"bold {colour}"))
        console.print(Text(f"  {note.found}"))
        for rationale in note.rationales:
            console.print(Text(f"  “{rationale}”", style=colour))
        if note.missing:
            console.print(Text(f"  {note.missing}"))
            console.print(Text(f"  → {note.example}", style="italic"))
        console.print()


def coloured(response: str, notes: list[Feedback]) -> Text:
    """The reply with every rationale in its mechanism's colour; where two overlap, the later's."""
    from rich.text import Text

    text = Text(response)
    for note in notes:
        for rationale in note.rationales:
            start = response.find(rationale)
            text.stylize(f"bold {COLOURS[note.mechanism]}", start, start + len(rationale))
    return text
