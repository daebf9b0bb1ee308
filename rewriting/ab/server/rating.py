"""What a rater's pages do: each function is one address, and answers with a page or sends on."""

from __future__ import annotations

import hashlib
import re
import time
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from rewriting.ab.server import work as states
from rewriting.ab.server.pages import pair_page
from rewriting.ab.server.tokens import read_ticket, write_ticket
from rewriting.ab.server.work import Progress, Work
from rewriting.ab.study.store import Ballot, NotYours
from rewriting.ab.study.study import TIE, Study
from rewriting.web.guard import read_form

if TYPE_CHECKING:
    from rewriting.ab.server.server import RatingServer

LONGEST_COMMENT = 2000
MORE = 10  # pairs that a rater who has finished takes from the pool at a time


def go_to(request: Request, path: str, *, saved: bool = True) -> Response:
    """The next page: a redirect, or its address for the page's script.

    saved: whether what was sent has been saved; a script is told by the status (200 or 409).
    """
    address = f"/r/{request.path_params['token']}{path}"
    if "application/json" in request.headers.get("accept", ""):
        return JSONResponse({"next": address}, status_code=200 if saved else 409)
    return RedirectResponse(address, status_code=303)


def place(progress: Progress) -> str:
    """The address of the page that a rater has to see next."""
    if progress.stopped:
        return "/stopped"
    if not progress.consented:
        return "/consent"
    if not progress.instructed:
        return "/instructions"
    return "/finished" if progress.position is None else f"/pair/{progress.position}"


async def go_on(server: RatingServer, request: Request, progress: Progress) -> Response:
    return go_to(request, place(progress))


async def show_consent(server: RatingServer, request: Request, progress: Progress) -> Response:
    return server.pages.show("consent.html", request, consented=progress.consented, problem="")


async def take_consent(server: RatingServer, request: Request, progress: Progress) -> Response:
    """Agreeing and declining are answers. A form without one is asked again, and not recorded."""
    answer = (await read_form(request)).get("answer")
    if answer not in ("agree", "decline"):
        problem = "Please choose one of the two answers."
        return server.pages.show(
            "consent.html", request, status=422, consented=progress.consented, problem=problem
        )
    agreed = answer == "agree"
    if not (agreed and progress.consented and not progress.stopped):
        kind = states.CONSENT if agreed else states.DECLINED
        await server.writer.run(lambda work: work.store.add_event(progress.rater, kind))
    return go_to(request, "")


async def show_instructions(server: RatingServer, request: Request, progress: Progress) -> Response:
    if progress.stopped or not progress.consented:
        return go_to(request, place(progress))
    return server.pages.show("instructions.html", request, started=progress.instructed)


async def take_instructions(server: RatingServer, request: Request, progress: Progress) -> Response:
    if progress.consented and not progress.instructed:
        await server.writer.run(lambda work: start(work, progress.rater))
    return go_to(request, "")


def start(work: Work, rater: int) -> None:
    """A rater who was added later has no list of their own, and takes from the pool at once."""
    work.store.add_event(rater, states.INSTRUCTED)
    if rater not in work.study.assignments:
        work.take_more(rater, MORE)


def pair_number(request: Request) -> int:
    """The place in the address. No list is longer, and Python refuses to read very long numbers."""
    text = request.path_params["number"]
    if not re.fullmatch(r"[0-9]{1,6}", text):
        raise HTTPException(404)
    return int(text)


def pair_is_open(progress: Progress, number: int) -> bool:
    """Pairs are answered in order; answered ones can be looked at and changed."""
    ready = progress.consented and progress.instructed and not progress.stopped
    return ready and 1 <= number <= progress.reachable


async def show_pair(
    server: RatingServer,
    request: Request,
    progress: Progress,
    problem: str = "",
    given: dict[str, str] | None = None,
) -> Response:
    number = pair_number(request)
    if not pair_is_open(progress, number):
        return go_to(request, place(progress))
    item = server.study.items[progress.assigned[number - 1].item]
    votes = server.work.store.votes(rater=progress.rater, item=item.id)
    page = pair_page(server.study, progress, number, votes, given)
    ticket = write_ticket(server.secret, progress.rater, item.id)
    status = 422 if problem else 200
    return server.pages.show(
        "pair.html", request, status=status, ticket=ticket, problem=problem, **page
    )


async def take_vote(server: RatingServer, request: Request, progress: Progress) -> Response:
    """Save a vote. Sent again with the same ticket and attempt, it is acknowledged, not doubled."""
    number = pair_number(request)
    form = await read_form(request)
    if not pair_is_open(progress, number):
        return go_to(request, place(progress), saved=False)
    one = progress.assigned[number - 1]
    ticket = read_ticket(form.get("ticket", ""), server.secret, progress.rater, one.item)
    if ticket is None:  # the pair has gone to somebody else, or the form is made up
        return go_to(request, place(progress), saved=False)
    right = server.study.items[one.item].other(one.left)
    problem, winners = read_winners(server.study, one.left, right, form)
    if problem:
        return await show_pair(server, request, progress, problem, form)
    ballot = Ballot(
        winners=winners,
        left=one.left,
        right=right,
        seconds=round(max(0.0, time.time() - ticket.shown), 3),
        comment=form.get("comment", "").strip(),
        harmful=form.get("harmful") == "yes",
    )
    key = f"{ticket.number}-{attempt_of(form)}"
    try:
        await server.writer.run(lambda work: work.store.vote(key, progress.rater, one.item, ballot))
    except NotYours:
        return go_to(request, "", saved=False)
    onward = number + 1 if number < progress.reachable else 0
    return go_to(request, f"/pair/{onward}" if onward else "")


def read_winners(
    study: Study, left: str, right: str, form: dict[str, str]
) -> tuple[str, dict[str, str]]:
    """What is wrong with the answers, or else criterion → winner."""
    meaning = {"A": left, "B": right} | ({"tie": TIE} if study.allow_ties else {})
    answers = {one.name: form.get(f"answer-{one.name}", "") for one in study.criteria}
    if len(form.get("comment", "")) > LONGEST_COMMENT:
        return f"Please shorten your comment to {LONGEST_COMMENT} characters.", {}
    if any(answer not in meaning for answer in answers.values()):
        return "Please answer every question.", {}
    return "", {name: meaning[answer] for name, answer in answers.items()}


def attempt_of(form: dict[str, str]) -> str:
    """What tells a change of mind on an open page from the same answer sent again."""
    attempt = form.get("attempt", "")
    if re.fullmatch(r"[0-9a-f]{8,32}", attempt):
        return attempt
    content = repr(sorted(form.items()))
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:16]


async def show_finished(server: RatingServer, request: Request, progress: Progress) -> Response:
    if place(progress) != "/finished":
        return go_to(request, place(progress))
    offered = min(MORE, len(server.work.on_offer(progress.rater)))
    return server.pages.show("finished.html", request, offered=offered, last=len(progress.assigned))


async def take_more(server: RatingServer, request: Request, progress: Progress) -> Response:
    if place(progress) == "/finished":
        await server.writer.run(lambda work: work.take_more(progress.rater, MORE))
    return go_to(request, "")


async def show_stopped(server: RatingServer, request: Request, progress: Progress) -> Response:
    if not progress.stopped:
        return go_to(request, place(progress))
    return server.pages.show("stopped.html", request, consented=progress.consented)


async def stop(server: RatingServer, request: Request, progress: Progress) -> Response:
    if not progress.stopped:
        await server.writer.run(lambda work: work.store.add_event(progress.rater, states.STOPPED))
    return go_to(request, "/stopped")


async def resume(server: RatingServer, request: Request, progress: Progress) -> Response:
    if progress.stopped:
        await server.writer.run(lambda work: work.store.add_event(progress.rater, states.RESUMED))
    return go_to(request, "")
