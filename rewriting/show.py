"""Before and after, for people: rewrites in the terminal with what is new standing out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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


# ---- samples of a training run, as lines of its samples.jsonl


def print_samples(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """A table of the posts, the rewrites with what is new in green, and the rewards."""
    cells = {
        "response, what is new in green": lambda row: _highlighted(
            row["response_post"], row["rewritten_response"]
        )
    }
    _print(title, rows, cells)


def print_responses(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """A table of the posts, the human's and the generator's responses, and the rewards."""
    from rich.text import Text

    cells = {
        "human response": lambda row: Text(shortened(row["response_post"]), style="dim"),
        "generated": lambda row: Text(shortened(row["rewritten_response"])),
    }
    _print(title, rows, cells)


def _print(
    title: str,
    rows: Sequence[Mapping[str, Any]],
    columns: Mapping[str, Callable[[Mapping[str, Any]], Any]],
) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left", show_lines=True)
    table.add_column("seeker", ratio=3, style="dim")
    for name in columns:
        table.add_column(name, ratio=5)
    table.add_column("rewards", no_wrap=True)
    for row in rows:
        values = {"total": row["reward"], **row["rewards"]}
        lines = [f"{name} {value:.3f}" for name, value in values.items() if value is not None]
        cells = [cell(row) for cell in columns.values()]
        table.add_row(Text(shortened(row["seeker_post"])), *cells, Text("\n".join(lines)))
    Console().print(table)


def shortened(text: str, length: int = 240) -> str:
    """A text in one line, cut at a word."""
    words = " ".join(text.split())
    return words if len(words) <= length else words[:length].rsplit(" ", 1)[0] + " …"
