"""The endpoints, what stands before them, and what the log says. No models."""

import asyncio
import http.client
import json
import re
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from rewriting.exchange import Exchange
from rewriting.serve.limits import Limits
from rewriting.serve.openapi import ANSWERS, HEALTH, openapi
from rewriting.serve.server import FAILED, PAGE, STATIC
from tests.rewriting.serve.toys import HELP, KIND, POST, TOKEN, FakeDesk, Served, Site

ENDPOINTS = ("/rewrite", "/score", "/feedback")


def test_a_rewrite_comes_with_alternatives_and_changes() -> None:
    with Site() as site:
        found = site.post(body=POST | {"id": "7", "seed": 5}).json()
    assert found["rewritten_response"] == f"{KIND} {POST['response_post']}"
    assert (found["id"], found["seed"], found["ai_assisted"]) == ("7", 5, True)
    assert [one["rewritten_response"] for one in found["alternatives"]] == [
        f"Why (seed 5)? {POST['response_post']}",
        POST["response_post"],
    ]
    assert "".join(one["after"] for one in found["changes"]) == found["rewritten_response"]


def test_a_crisis_comes_back_as_it_was_with_help() -> None:
    with Site() as site:
        crisis = POST | {"seeker_post": "I want to die."}
        found = site.post(body=crisis).json()
        assert found["rewritten_response"] == POST["response_post"]
        assert found["alternatives"] == []
        for path in ENDPOINTS:
            safety = site.post(path, crisis).json()["safety"]
            assert (safety["verdict"], safety["help"]) == ("crisis", HELP)


def matches(value: Any, schema: dict[str, Any], place: str = "answer") -> None:
    """The part of JSON schema that our description uses; every field has to be described."""
    if "const" in schema:
        assert value == schema["const"], place
    if "enum" in schema:
        assert value in schema["enum"], place
    kinds = {
        "string": str, "integer": int, "number": (int, float), "boolean": bool, "object": dict,
        "array": list, "null": type(None),
    }  # fmt: skip
    if "type" in schema:
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        assert any(isinstance(value, kinds[name]) for name in names), (place, value)
    if isinstance(value, dict):
        known, more = schema.get("properties", {}), schema.get("additionalProperties")
        assert set(schema.get("required", [])) <= set(value), place
        for name, inside in value.items():
            assert name in known or more, f"{place}.{name} is not described"
            matches(inside, known.get(name) or more, f"{place}.{name}")
    if isinstance(value, list):
        for inside in value:
            matches(inside, schema["items"], f"{place}[]")


@pytest.mark.parametrize("path", ENDPOINTS)
def test_answers_are_as_described(path: str) -> None:
    with Site() as site:
        for body in (POST, POST | {"seeker_post": "I want to die.", "history": ["Hi."]}):
            matches(site.post(path, body).json(), ANSWERS[path[1:]])
        matches(site.client.get("/health").json(), HEALTH)


def test_the_description_names_every_address_and_limit() -> None:
    with Site(limits=Limits(characters=77), token=TOKEN) as site:
        found = site.client.get("/openapi.json").json()
    assert found == json.loads(json.dumps(openapi(Limits(characters=77), token=True)))
    assert set(found["paths"]) == {*ENDPOINTS, "/health"}
    asked = found["components"]["schemas"]["asked"]["properties"]
    assert asked["seeker_post"]["maxLength"] == 77
    references = re.findall(r'"#/components/schemas/(\w+)"', json.dumps(found))
    assert set(references) == set(found["components"]["schemas"])


def test_health_tells_what_stands_behind_it() -> None:
    with Site(token=TOKEN) as site:
        found = site.client.get("/health").json()  # without the token: for load balancers
    assert (found["status"], found["policy"], found["waiting"]) == ("ok", "fake", 0)
    assert found["token_needed"] is True


def test_the_page_and_its_parts_have_no_outside_resource() -> None:
    with Site() as site:
        answers = [site.client.get(path) for path in ("/", *(f"/static/{name}" for name in STATIC))]
    for answer in answers:
        assert answer.status_code == 200
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert not re.search(r"https?://(?!findahelpline)|@import|url\(", answer.text), answer.url
    assert not re.search(r"<script(?! src=\"/static/)|\son\w+=\"|style=", answers[0].text)
    assert HELP in answers[0].text
    assert {path.name for path in PAGE.iterdir()} == {"index.html", *STATIC}


def test_help_texts_are_escaped_on_the_page() -> None:
    desk = FakeDesk()
    desk.help_text = "<script>alert(1)</script>"
    with Site(desk) as site:
        assert "<script>alert" not in site.client.get("/").text


# What stands before the endpoints


@pytest.mark.parametrize("path", ENDPOINTS)
def test_without_the_token_nothing_is_answered(path: str) -> None:
    with Site(token=TOKEN) as site:
        for given in ({}, {"Authorization": "Bearer no"}, {"Authorization": f"Basic {TOKEN}"}):
            answer = site.post(path, headers=given)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
        assert site.post(path, headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
        assert site.desk.batches == [(path[1:], 1)]
        assert TOKEN not in site.stream.getvalue()


def test_too_many_requests_of_an_address_wait() -> None:
    with Site(limits=Limits(per_minute=3)) as site:
        answers = [site.post("/score") for _ in range(4)]
        assert [one.status_code for one in answers] == [200, 200, 200, 429]
        assert 1 <= int(answers[3].headers["retry-after"]) <= 20
        assert site.client.get("/health").status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://testserver"}, 200),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Origin": "https://elsewhere.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Host": "elsewhere.example"}, 421),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content-Type": "application/json; charset=utf-8"}, 200),
        ({"Content-Encoding": "gzip"}, 415),
    ],
)
def test_pages_of_other_sites_cannot_use_it(headers: dict[str, str], status: int) -> None:
    with Site() as site:
        answer = site.post("/score", headers={"Content-Type": "application/json"} | headers)
        assert answer.status_code == status
        assert status == 200 or "error" in answer.json()


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/nowhere", 404), ("GET", "/rewrite", 405), ("POST", "/", 405),
     ("PUT", "/score", 405), ("GET", "/static/../server.py", 404), ("GET", "/static/x", 404)],
)  # fmt: skip
def test_other_addresses_and_methods(method: str, path: str, status: int) -> None:
    with Site() as site:
        answer = site.client.request(method, path)
        assert answer.status_code == status
        assert "error" in answer.json()


def test_a_long_body_is_not_read_to_its_end() -> None:
    with Site(limits=Limits(per_minute=0, body=1000)) as site:
        answer = site.post(body={"seeker_post": "a" * 2000, "response_post": "b"})
        assert answer.status_code == 413


# Many at once, slow ones, failing ones


def test_requests_that_come_together_share_a_batch_and_keep_their_answers() -> None:
    site = Site(FakeDesk(lambda _: time.sleep(0.05)))
    bodies = [POST | {"id": str(n), "response_post": f"Reply {n}."} for n in range(60)]
    with Served(site) as served, ThreadPoolExecutor(20) as clients:
        answers = list(clients.map(lambda body: ask(served.port, "/rewrite", body), bodies))
    for number, (status, found) in enumerate(answers):
        assert status == 200
        assert found["id"] == str(number)
        assert found["rewritten_response"] == f"{KIND} Reply {number}."
    sizes = [size for _, size in site.desk.batches]
    assert sum(sizes) == 60
    assert max(sizes) > 4


def ask(port: int, path: str, body: Any) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    headers = {"Content-Type": "application/json"}
    connection.request("POST", path, json.dumps(body), headers)
    answer = connection.getresponse()
    found = answer.status, json.loads(answer.read())
    connection.close()
    return found


def test_who_waits_too_long_is_told_so() -> None:
    may_end = threading.Event()
    limits = Limits(per_minute=0, seconds=0.2)
    with Site(FakeDesk(lambda _: may_end.wait(20) and None), limits=limits) as site:
        answer = site.post()
        may_end.set()
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "10"
    assert "0.2 seconds" in answer.json()["error"]


def test_where_too_many_wait_the_next_is_refused_at_once() -> None:
    may_end = threading.Event()
    desk = FakeDesk(lambda _: may_end.wait(20) and None)
    with Site(desk, limits=Limits(per_minute=0, waiting=1)) as site, ThreadPoolExecutor(2) as two:
        first = two.submit(site.post)
        wait_until(lambda: desk.batches == [("rewrite", 1)])
        second = two.submit(site.post)
        wait_until(lambda: site.server.batcher.waiting == 1)
        refusal = site.post()
        may_end.set()
        assert [first.result().status_code, second.result().status_code] == [200, 200]
    assert refusal.status_code == 503
    assert refusal.headers["retry-after"] == "5"


def wait_until(true: Any, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_a_client_who_leaves_costs_nothing() -> None:
    may_end = threading.Event()
    desk = FakeDesk(lambda _: may_end.wait(20) and None)
    site = Site(desk)
    with Served(site) as served, ThreadPoolExecutor(1) as one:
        first = one.submit(ask, served.port, "/rewrite", POST)
        wait_until(lambda: desk.batches == [("rewrite", 1)])
        leaves = http.client.HTTPConnection("127.0.0.1", served.port)
        leaves.request("POST", "/rewrite", json.dumps(POST), {"Content-Type": "application/json"})
        wait_until(lambda: site.server.batcher.waiting == 1)
        leaves.close()
        wait_until(lambda: site.server.batcher.waiting == 0)
        may_end.set()
        assert first.result()[0] == 200
    assert desk.batches == [("rewrite", 1)]


def fails_on_boom(exchanges: Sequence[Exchange]) -> None:
    if any("boom" in one.response_post for one in exchanges):
        raise ValueError(f"a message with a text: {exchanges[0].response_post}")


def test_a_failure_is_ours_and_says_nothing() -> None:
    with Site(FakeDesk(fails_on_boom)) as site:
        answer = site.post(body=POST | {"response_post": "boom secret"})
        assert (answer.status_code, answer.json()) == (500, {"error": FAILED})
        assert site.post().status_code == 200
        failed, fine = site.logged
    assert failed["request"] == answer.headers["x-request-id"]
    assert re.fullmatch(r"ValueError at tests/rewriting/serve/\w+\.py:\d+", failed["failure"])
    assert "failure" not in fine
    assert "secret" not in site.stream.getvalue()


# The log


def test_a_line_for_every_request_without_its_texts() -> None:
    with Site() as site:
        site.post(body=POST | {"id": "an-id-of-mine"})
        site.client.get("/a-path-of-mine?and=more", headers={"User-Agent": "an-agent-of-mine"})
        site.post(body=POST | {"seed": "a-seed-of-mine"})
        first, second, third = site.logged
    assert first.keys() == {
        "time", "event", "request", "method", "status", "milliseconds", "route", "characters",
        "batch", "waited_ms", "ms", "verdict",
    }  # fmt: skip
    assert (first["route"], first["status"], first["verdict"]) == ("rewrite", 200, "clear")
    assert second["status"] == 404
    assert third["refused"].startswith("seed is")
    written = site.stream.getvalue()
    for text in (*POST.values(), KIND, "of-mine", "testclient", "testserver"):
        assert text not in written
    assert site.logged[-1]["event"] == "stopped"


def test_texts_are_logged_only_where_asked_for() -> None:
    with Site(texts=True) as site:
        site.post()
        (line,) = site.logged
    assert line["asked"]["seeker_post"] == POST["seeker_post"]
    assert line["answer"]["rewritten_response"].startswith(KIND)


def test_a_log_that_cannot_be_written_does_not_keep_requests_from_being_answered() -> None:
    with Site() as site:
        site.stream.close()
        assert site.post("/score").status_code == 200


def test_stopping_lets_requests_at_work_end() -> None:
    site = Site(FakeDesk(lambda _: time.sleep(0.5)))
    with ThreadPoolExecutor(1) as one:
        with Served(site) as served:
            answer = one.submit(ask, served.port, "/rewrite", POST)
            wait_until(lambda: site.desk.batches == [("rewrite", 1)])
        assert answer.result()[0] == 200


def test_the_event_loop_stays_free_while_the_models_work() -> None:
    may_end = threading.Event()
    desk = FakeDesk(lambda _: may_end.wait(20) and None)
    with Site(desk) as site, ThreadPoolExecutor(1) as one:
        waiting = one.submit(site.post)
        wait_until(lambda: desk.batches == [("rewrite", 1)])
        assert site.client.get("/health").json()["status"] == "ok"
        may_end.set()
        assert waiting.result().status_code == 200


def test_asyncio_debug_finds_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """No task is left behind whose error nobody reads."""
    with Site(FakeDesk(fails_on_boom)) as site:
        for _ in range(3):
            site.post(body=POST | {"response_post": "boom"})
    assert [record for record in caplog.records if record.name == asyncio.__name__] == []
