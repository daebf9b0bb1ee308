"""The pages as HTML: templates with automatic escaping, and what the rating page shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from rewriting.ab.server.work import Progress
from rewriting.ab.study.study import TIE, Study, Vote

PAGES: Final = Path(__file__).parent / "pages"


class Pages:
    """Renders the templates for one study. Every page has its title and help resources."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self._templates = Environment(
            loader=FileSystemLoader(PAGES),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )

    def show(
        self,
        template: str,
        request: Request | None = None,
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        **values: Any,
    ) -> HTMLResponse:
        token = request.path_params["token"] if request else ""
        html = self._templates.get_template(template).render(
            study=self.study, base=f"/r/{token}", **values
        )
        return HTMLResponse(html, status_code=status, headers=headers)

    def message(
        self, text: str, *, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> HTMLResponse:
        return self.show("message.html", status=status, headers=headers, text=text)


def pair_page(
    study: Study,
    progress: Progress,
    number: int,
    votes: Sequence[Vote],
    given: Mapping[str, str] | None,
) -> dict[str, Any]:
    """What the rating page shows: the pair, and the answers given so far.

    given: the fields of a form that was sent but not complete; they win over saved votes.
    """
    one = progress.assigned[number - 1]
    item = study.items[one.item]
    first = sum(study.items[other.item].kind == "practice" for other in progress.assigned)
    practice = number <= first
    group = progress.assigned[:first] if practice else progress.assigned[first:]
    place = number if practice else number - first
    before = study.items[progress.assigned[number - 2].item] if number > 1 else None
    saved = {vote.criterion: letter(vote) for vote in votes}
    if given is not None:
        saved = {c.name: given.get(f"answer-{c.name}", "") for c in study.criteria}
    return {
        "number": number,
        "heading": f"{'Practice' if practice else 'Pair'} {place} of {len(group)}",
        "practice": practice,
        "done": sum(other.item in progress.voted for other in group),
        "total": len(group),
        "note": before.note if before is not None else "",
        "history": item.history,
        "seeker_post": item.seeker_post,
        "replies": {"A": item.replies[one.left], "B": item.replies[item.other(one.left)]},
        "answers": saved,
        "comment": given.get("comment", "") if given else next((v.comment for v in votes), ""),
        "harmful": bool(given.get("harmful")) if given else any(v.harmful for v in votes),
        "changing": bool(votes),
        "next_open": number < progress.reachable,
    }


def letter(vote: Vote) -> str:
    """The answer that a vote stands for on the page: A is the left reply, B the right one."""
    if vote.winner == TIE:
        return "tie"
    return "A" if vote.winner == vote.left else "B"
