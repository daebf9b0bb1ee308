"""Blinding, scripts in texts, posts from other sites, guessing, and nonsense in every field."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rewriting.ab.study.create import Design, Output, create_study
from rewriting.ab.study.study import Criterion
from tests.rewriting.ab.toys import ADMIN, ORIGIN, SYSTEMS, Site, answers, toy_study

PAYLOADS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'-alert(1)-'",
    "</textarea><svg onload=alert(1)>",
    "{{ 7 * 191 }}",
)
POSTS = ("/consent", "/instructions", "/pair/1", "/more", "/stop", "/resume")


def every_page(site: Site) -> Iterator[Any]:
    """Every route, in every state that a rater can be in, with headers and redirects."""
    client = site.client
    yield client.get("/")
    yield client.get("/nowhere")
    for name in ("style.css", "rate.js", "admin.js", "../server.py"):
        yield client.get(f"/static/{name}")
    yield client.get("/r/unknown")
    yield site.get(1)
    yield site.get(1, "/consent")
    yield site.post(1, "/consent", {"answer": "agree"})
    yield site.get(1, "/instructions")
    yield site.post(1, "/instructions")
    for number in range(1, len(site.study.assignments[1]) + 1):
        yield site.get(1, f"/pair/{number}")
        yield site.post(1, f"/pair/{number}", {"ticket": site.ticket(1, number)})
        yield site.vote(1, number, "A", harmful="yes")
        yield site.get(1, f"/pair/{number}")
    yield site.get(1, "/finished")
    yield site.post(1, "/more")
    yield site.post(1, "/stop")
    yield site.get(1, "/stopped")
    yield site.post(1, "/resume")
    yield client.get(f"/admin/{ADMIN}")


def test_no_answer_names_a_system_an_item_or_a_path(site: Site) -> None:
    words = [*SYSTEMS, str(site.folder), "votes.sqlite", "study.json", "repeat_of"]
    words += list(site.study.items)
    words += [item.exchange_id for item in site.study.of_kind("item")]
    seen = 0
    for response in every_page(site):
        shown = f"{response.url}\n{response.headers}\n{response.text}".lower()
        for word in words:
            assert word.lower() not in shown, (word, response.url)
        seen += 1
    assert seen > 50


def test_nothing_tells_checks_and_repeats_from_items(site: Site) -> None:
    """Pages differ in the texts, the numbers and the ticket only."""
    site.begin(1)
    shapes = set()
    for number, one in enumerate(site.study.assignments[1], start=1):
        item = site.study.items[one.item]
        page = site.get(1, f"/pair/{number}").text
        site.vote(1, number)
        if item.kind == "practice" or number == 3:  # practice is said to be, its notes are shown
            continue
        page = page.replace(item.seeker_post, "")
        for reply in item.replies.values():
            page = page.replace(reply, "")
        page = re.sub(r'value="[0-9a-f-]{20,}"', "", page)
        shapes.add(re.sub(r"\d+", "", page.replace(site.tokens[1], "")))
    assert len(shapes) == 1


def test_headers_switch_inline_code_off_everywhere(site: Site) -> None:
    for response in every_page(site):
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["cache-control"] == "no-store"
        assert "server" not in response.headers
        assert not re.search(
            r"<script(?! src=\"/static/)|\son\w+=|style=|javascript:", response.text
        )
        assert not re.search(r"(src|href|action)=\"(https?:)?//", response.text)


def test_payloads_in_every_text_run_nowhere(tmp_path: Path) -> None:
    bad = " ".join(PAYLOADS)
    rows = {
        name: [Output(f"{n}", f"Post {n} {bad}", f"{name[0]} {n} {bad}", (bad,)) for n in range(4)]
        for name in SYSTEMS
    }
    study = create_study(
        rows,
        Design(
            raters=1,
            votes_per_item=1,
            criteria=[Criterion("warm", f"Warm? {bad}")],
            title=f"Title {bad}",
            consent=bad,
            instructions=bad,
            help_resources=[bad],
            practice=[{"seeker_post": bad, "better": bad, "worse": bad, "note": bad}],
        ),
    )
    with Site(tmp_path / "study", study) as site:
        site.begin(1)
        for number in range(1, len(study.assignments[1]) + 1):
            site.vote(1, number, "A", comment=bad, harmful="yes")
        pages = [*every_page(site)]
        for response in pages:
            assert "<script>alert" not in response.text, response.url
            assert "<img" not in response.text
            assert "<svg" not in response.text
            assert "1337" not in response.text
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in pages[-1].text


CROSS_SITE = (
    {},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://testserver.evil.example"},
    {"Origin": "http://["},
    {"Origin": ORIGIN, "Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "none"},
)


@pytest.mark.parametrize("headers", CROSS_SITE)
def test_posts_from_other_sites_are_refused_on_every_route(
    site: Site, headers: dict[str, str]
) -> None:
    site.begin(1)
    fields = {"ticket": site.ticket(1, 1), **answers(site.study, "A"), "answer": "decline"}
    paths = [route.path for route in site.server.routes() if "POST" in (route.methods or ())]
    assert {path.removeprefix("/r/{token}").replace("{number}", "1") for path in paths} == set(
        POSTS
    )
    before = site.store.events()
    for path in POSTS:
        response = site.client.post(site.path(1, path), data=fields, headers=headers)
        assert response.status_code == 403, path
    assert site.store.events() == before
    assert site.store.votes() == []


@pytest.mark.parametrize("headers", [{"Origin": ORIGIN}, {"Sec-Fetch-Site": "same-origin"}])
def test_posts_of_our_own_pages_are_taken(site: Site, headers: dict[str, str]) -> None:
    response = site.client.post(site.path(1, "/consent"), data={"answer": "agree"}, headers=headers)
    assert response.status_code == 303


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("testserver", 200),
        ("TestServer:8000", 200),
        ("127.0.0.1:8000", 200),
        ("[::1]:8000", 200),
        ("localhost", 200),
        ("192.168.0.7", 200),
        ("evil.example", 421),
        ("testserver.evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("", 421),
        ("[", 421),
        ("a b", 421),
    ],
)
def test_only_names_of_this_server_are_answered(site: Site, host: str, status: int) -> None:
    """Another site that points its name at this machine reads nothing."""
    response = site.client.get(site.path(1, "/consent"), headers={"Host": host})
    assert response.status_code == status
    assert ("Before you begin" in response.text) == (status == 200)
    headers = {"Host": host, "Origin": f"http://{host}"}
    response = site.client.post(site.path(1, "/consent"), data={"x": "y"}, headers=headers)
    assert response.status_code == (422 if status == 200 else 421)


def test_a_rater_sees_only_what_falls_to_them(tmp_path: Path) -> None:
    study = toy_study(count=8, raters=2, votes_per_item=1, repeats=0, practice=(), attention=())
    with Site(tmp_path / "study", study) as site:
        mine = {study.items[one.item].seeker_post for one in study.assignments[1]}
        others = {study.items[one.item].seeker_post for one in study.assignments[2]}
        assert mine.isdisjoint(others)
        site.begin(2)
        site.vote(2, 1, "A", comment="a secret of rater two")
        shown = "".join(
            response.text for response in every_page(site) if "/admin/" not in str(response.url)
        )
        assert all(post in shown for post in mine)
        assert not any(post in shown for post in others)
        assert "a secret of rater two" not in shown


def test_guessing_is_limited_and_raters_go_on(site: Site) -> None:
    site.begin(1)
    statuses = [site.client.get(f"/r/guess-{number}").status_code for number in range(30)]
    assert statuses == [404] * 20 + [429] * 10
    assert site.client.get("/admin/guess").status_code == 429
    assert site.client.get(f"/admin/{ADMIN}").status_code == 429, "not even looked up"
    assert site.get(2).status_code == 429
    assert site.get(1, "/pair/1").status_code == 200, "this link has worked from here before"
    assert site.client.get("/r/guess").headers["retry-after"] == "60"


def test_the_hash_of_a_token_is_no_token(site: Site) -> None:
    rows = site.store._database.execute("SELECT hash FROM tokens").fetchall()
    assert all(site.client.get(f"/r/{hashed}").status_code == 404 for (hashed,) in rows)
    assert not any(token.encode() in site.store.path.read_bytes() for token in site.tokens.values())


def test_long_and_strange_bodies_are_refused(site: Site) -> None:
    site.begin(1)
    path = site.path(1, "/pair/1")
    form = {"Origin": ORIGIN, "Content-Type": "application/x-www-form-urlencoded"}
    for body, headers, status in (
        (b"x" * 70_000, form, 413),
        (b"&".join(b"a=%d" % n for n in range(200)), form, 400),
        (b"{}", form | {"Content-Type": "application/json"}, 415),
        (b"comment=" + b"y" * 3000, form, 303),
        (b"\xff\xfe=\x00", form, 303),
    ):
        response = site.client.post(path, content=body, headers=headers)
        assert response.status_code == status, body[:20]
    fields = {"ticket": site.ticket(1, 1), **answers(site.study, "A"), "comment": "y" * 2001}
    assert site.post(1, "/pair/1", fields).status_code == 422
    assert site.store.votes() == []


TEXT = st.text(max_size=30)
METHODS = st.sampled_from(["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"])
PIECES = st.sampled_from(
    ["r", "TOKEN", "pair", "1", "2", "-1", "999999999999999999999999", "9" * 5000, "consent",
     "instructions", "finished", "more", "stop", "stopped", "resume", "admin", "ADMIN",
     "static", "style.css",
     "..", "%2e%2e", "%00", "%ff", ""]
)  # fmt: skip
FIELDS = st.dictionaries(
    st.sampled_from(
        ["ticket", "answer-empathic", "answer-fluent", "answer", "comment", "harmful", "attempt"]
    )
    | TEXT,
    TEXT | st.sampled_from(["A", "B", "tie", "agree", "decline", "0" * 16, "a-b-c"]),
    max_size=8,
)


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(METHODS, st.lists(PIECES | TEXT, max_size=5), FIELDS, st.binary(max_size=40), st.booleans())
def test_nonsense_never_breaks_the_server(
    site: Site, method: str, pieces: list[str], fields: dict[str, str], body: bytes, raw: bool
) -> None:
    """Random methods, addresses, forms and bodies: refused or answered, never an error of ours."""
    site.server.guesses.limit = 10**9
    named = {"TOKEN": site.tokens[1], "ADMIN": ADMIN}
    path = "/" + "/".join(named.get(piece, piece) for piece in pieces)
    headers = {"Origin": ORIGIN, "Content-Type": "application/x-www-form-urlencoded"}
    content = {"content": body} if raw else {"data": fields}
    url = f"{ORIGIN}{quote(path, safe='/%')}"
    response = site.client.request(method, url, headers=headers, **content)  # type: ignore[arg-type]
    assert response.status_code < 500


@pytest.mark.parametrize("number", ["9" * 5000, "1234567", "-1", "1.0", "x", "%D9%A1"])
def test_a_pair_has_a_short_number(site: Site, number: str) -> None:
    assert site.get(1, f"/pair/{number}").status_code == 404
    assert site.post(1, f"/pair/{number}").status_code == 404


def test_study_files_are_not_served(site: Site) -> None:
    for path in (
        "/study.json",
        "/votes.sqlite",
        "/static/..%2f..%2fstudy.json",
        "/static/pair.html",
    ):
        assert site.client.get(path).status_code == 404


def test_replies_of_the_same_pair_look_alike(tmp_path: Path) -> None:
    """White space at the ends of a reply, which could mark a system, is gone."""
    rows = {
        name: [Output("1", "Post", f"{name[0]} reply" + ("\n\n" if name == SYSTEMS[0] else ""))]
        for name in SYSTEMS
    }
    study = create_study(rows, Design(raters=1, votes_per_item=1))
    assert all(r == r.strip() for item in study.of_kind("item") for r in item.replies.values())
