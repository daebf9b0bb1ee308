"""Before and after, for people: rewrites in the terminal with what is new standing out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rewriting.sentences import split_sentences

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text


def new_sentences(before: str, after: str) -> list[tuple[str, bool]]:
    """The rewritten response in pieces: each sentence with its gap, and whether it is new."""
    known = {_bare(sentence) for sentence in split_sentences(before).texts}
    sentences = split_sentences(after)
    pieces = [(sentences.gaps[0], False)] if sentences.gaps[0] else []
    for text, gap in zip(sentences.texts, sentences.gaps[1:], strict=True):
        pieces.append((text + gap, _bare(text) not in known))
    return pieces


def _bare(sentence: str) -> str:
    """A sentence without the full stop that joining may have added."""
    return sentence.rstrip(".").lower()


def before_and_after(row: Mapping[str, Any]) -> RenderableType:
    """A line of `rewriting rewrite` as a panel."""
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    table.add_row("seeker", Text(row["seeker_post"], style="dim"))
    table.add_row("before", Text(row["response_post"]))
    table.add_row("after", _highlighted(row["response_post"], row["rewritten_response"]))
    if row["rewards"]:
        table.add_row("rewards", Text(reward_line(row["rewards"]), style="dim"))
    safety = row.get("safety", {})
    if safety.get("reasons"):
        said = "; ".join([safety["verdict"], *safety["reasons"]])
        table.add_row("safety", Text(said, style="yellow"))
    if "help" in safety:
        table.add_row("help", Text(safety["help"]))
    title = f"{row['policy']} · {row['id']}" if row["id"] else row["policy"]
    return Panel(table, title=Text(title), title_align="left", border_style="dim")


def reward_line(rewards: Mapping[str, float | None]) -> str:
    """The value of every reward term in one line."""
    values = ("–" if value is None else f"{value:.3g}" for value in rewards.values())
    return " · ".join(f"{name} {value}" for name, value in zip(rewards, values, strict=True))


def _highlighted(before: str, after: str) -> Text:
    from rich.text import Text

    text = Text()
    for piece, is_new in new_sentences(before, after):
        text.append(piece, style="bold green" if is_new else "")
    return text
