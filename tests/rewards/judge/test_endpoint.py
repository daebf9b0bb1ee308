"""A judge behind a server: right, slow, failing, busy and broken answers."""

import json
import math
import threading
from pathlib import Path
from typing import Any

import pytest

from rewards.judge.client import LONGEST_PAUSE, backoff, first_line, key_from, retry_after
from rewards.judge.endpoint import EndpointJudge
from rewards.judge.memory import DiskCache, Remembered
from rewards.judge.question import Numbers, Question
from rewriting.errors import UserError
from tests.rewards.judge.server import Endpoint, Reply, completion

KEY = "sk-never-shown-0123456789"
HALVES = {"A": math.log(0.6), " A": math.log(0.1), "B": math.log(0.1), "The": math.log(0.2)}


def question(text: str = "Oh.") -> Question:
    return Question("Better? {response}", (("response", text),), ("A", "B"))


def judge(endpoint: Endpoint, **options: Any) -> EndpointJudge:
    """A judge that notes its pauses instead of making them."""
    made = EndpointJudge("any-model", endpoint.url, **options)
    pauses: list[float] = []

    def pause(seconds: float, stop: threading.Event) -> None:
        pauses.append(seconds)

    made.client.pause = pause
    made.pauses = pauses  # type: ignore[attr-defined]
    return made


def answers(made: EndpointJudge, *questions: Question) -> list[Numbers]:
    return [numbers for _, numbers in sorted(made.answers(questions or [question()]))]


def pauses(made: EndpointJudge) -> list[float]:
    found: list[float] = made.pauses  # type: ignore[attr-defined]
    return found


def test_the_request_is_what_the_api_asks_for(endpoint: Endpoint) -> None:
    endpoint.replies = [completion("A")]
    answers(EndpointJudge("any-model", f"{endpoint.url}/"))
    assert endpoint.paths == ["/v1/chat/completions"]
    assert endpoint.requests == [
        {
            "model": "any-model",
            "messages": [{"role": "user", "content": "Better? Oh."}],
            "max_tokens": 4,
            "temperature": 0,
            "logprobs": True,
            "top_logprobs": 20,
        }
    ]
    assert "Authorization" not in endpoint.headers[0]


def test_log_probabilities_are_read_where_there_are_any(endpoint: Endpoint) -> None:
    endpoint.replies = [completion("A", HALVES), completion("B", {"B": 0.0})]
    made = judge(endpoint, concurrency=1)
    # 0.6 and 0.1 with a space before it; the rest of the mass is on another word.
    assert answers(made) == [pytest.approx((0.7, 0.1))]
    assert answers(made) == [(0.0, 1.0)]


@pytest.mark.parametrize("said", ["B", " B\n", "B.", "**B**", "(B)", '"B"'])
def test_without_log_probabilities_the_answer_is_read(endpoint: Endpoint, said: str) -> None:
    endpoint.replies = [completion(said)]
    assert answers(judge(endpoint)) == [(0.0, 1.0)]


def test_leading_white_space_is_no_answer(endpoint: Endpoint) -> None:
    first = {"token": "\n", "logprob": 0.0, "top_logprobs": [{"token": "\n", "logprob": 0.0}]}
    second = {"token": "A", "top_logprobs": [{"token": "A", "logprob": -1.0}]}
    choice = {"message": {"content": "\nA"}, "logprobs": {"content": [first, second]}}
    endpoint.replies = [Reply(json.dumps({"choices": [choice]}))]
    assert answers(judge(endpoint)) == [(pytest.approx(math.exp(-1)), 0.0)]


@pytest.mark.parametrize("body", ["", "{", "[]", "{}", '{"choices": []}', '{"choices": [{}]}'])
def test_malformed_answers_are_asked_for_once_more(endpoint: Endpoint, body: str) -> None:
    endpoint.replies = [Reply(body), completion("A")]
    assert answers(judge(endpoint)) == [(1.0, 0.0)]
    endpoint.replies = [Reply(body), Reply(body), completion("A")]
    with pytest.raises(UserError, match="was asked twice for one of A, B and gave no chat compl"):
        answers(judge(endpoint))
    assert len(endpoint.requests) == 4


@pytest.mark.parametrize("said", ["A or B", "Reply A is better.", "a", "C", "", None, ["A"]])
def test_an_answer_off_the_scale_is_never_a_score(endpoint: Endpoint, said: Any) -> None:
    endpoint.replies = [completion(said), completion(said)]
    with pytest.raises(UserError, match="any-model was asked twice for one of A, B and gave"):
        answers(judge(endpoint))


def test_likeliest_tokens_without_an_answer_do_not_count(endpoint: Endpoint) -> None:
    endpoint.replies = [completion("A", {"The": 0.0})]
    assert answers(judge(endpoint)) == [(1.0, 0.0)]
    endpoint.replies = [completion("A", {"A": math.nan, "B": -1.0})]
    assert answers(judge(endpoint)) == [(1.0, 0.0)]
    endpoint.replies = [completion("Well", {"Well": 0.0})] * 2
    with pytest.raises(UserError, match=r"gave 'Well'\. Ask for the answer alone"):
        answers(judge(endpoint))


def test_a_refusal_with_an_answer_among_its_tokens_is_no_score(endpoint: Endpoint) -> None:
    endpoint.replies = [completion("I cannot", {"I": -0.01, "A": -9.0})] * 2
    with pytest.raises(UserError, match="gave 'I cannot'"):
        answers(judge(endpoint))


def test_a_failing_server_is_asked_again(
    endpoint: Endpoint, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint.replies = [Reply("broken", 500), Reply("busy", 503), completion("A")]
    made = judge(endpoint)
    assert answers(made) == [(1.0, 0.0)]
    first, second = pauses(made)
    assert 0.25 <= first <= 0.5 <= second <= 1.0
    assert [record.getMessage().split(": ", 1)[1] for record in caplog.records] == [
        f"attempt 1 of 5 failed (status 500, broken); the next in {first:.1f} s",
        f"attempt 2 of 5 failed (status 503, busy); the next in {second:.1f} s",
    ]


def test_a_server_that_keeps_failing_is_named(endpoint: Endpoint) -> None:
    endpoint.replies = lambda _: Reply("\n  the model is loading\nmore", 503)
    made = judge(endpoint, retries=2)
    with pytest.raises(UserError) as caught:
        answers(made)
    assert str(caught.value) == (
        f"{endpoint.url}/chat/completions did not answer in 3 attempts; the last one: status 503, "
        "the model is loading. A longer timeout, more retries or less concurrency may help."
    )
    assert len(endpoint.requests) == 3


def test_a_slow_server_is_given_up_and_asked_again(endpoint: Endpoint) -> None:
    slow = completion("B")
    slow.delay = 2.3
    endpoint.replies = [slow, completion("A")]
    assert answers(judge(endpoint, timeout=2)) == [(1.0, 0.0)]
    endpoint.replies = [slow]
    with pytest.raises(UserError, match=r"in 1 attempts; the last one: no answer within 0.1 s"):
        answers(judge(endpoint, timeout=0.1, retries=0))


def test_a_busy_server_says_when(endpoint: Endpoint) -> None:
    endpoint.replies = [Reply("slow down", 429, {"Retry-After": "7"}), completion("A")]
    made = judge(endpoint)
    assert answers(made) == [(1.0, 0.0)]
    assert pauses(made) == [7.0]
    endpoint.replies = [Reply("slow down", 429), completion("A")]
    assert answers(made) == [(1.0, 0.0)]
    assert pauses(made)[1] <= 0.5
    endpoint.replies = [Reply("come back tomorrow", 429, {"Retry-After": "86400"})]
    with pytest.raises(UserError, match=r"asks to wait for 86400 s \(status 429, come back"):
        answers(made)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422, 301, 307])
def test_a_refusal_is_an_error_at_once(endpoint: Endpoint, status: int) -> None:
    elsewhere = {"Location": f"{endpoint.url}/elsewhere"}
    endpoint.replies = [Reply("no such model\ndetails", status, elsewhere)]
    with pytest.raises(UserError, match=f"refused: status {status}, no such model$"):
        answers(judge(endpoint))
    assert len(endpoint.requests) == 1  # and a redirect is not followed


def test_a_server_that_does_not_know_log_probabilities(endpoint: Endpoint) -> None:
    def reply(request: dict[str, Any]) -> Reply:
        if "logprobs" in request:
            return Reply("Unknown argument: top_logprobs", 400)
        return completion("B")

    endpoint.replies = reply
    made = judge(endpoint, concurrency=1)
    assert answers(made, question("1"), question("2")) == [(0.0, 1.0)] * 2
    assert len(endpoint.requests) == 3  # it is tried once


def test_the_key_is_sent_and_never_shown(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("THE_KEY", f" {KEY}\n")
    made = judge(endpoint, api_key_env="THE_KEY", retries=1)
    endpoint.replies = [completion("A")]
    answers(made)
    assert endpoint.headers[0]["Authorization"] == f"Bearer {KEY}"
    told = [f"wrong key {KEY}", json.dumps({"error": f"Bearer {KEY}"})]
    for reply in [*(Reply(t, s) for t in told for s in (401, 429, 500)), Reply(told[1])]:
        endpoint.replies = [reply, reply]
        with pytest.raises(UserError) as caught:
            answers(made)
        assert KEY not in caplog.text
        chain: BaseException | None = caught.value
        assert "[key]" in str(chain)
        while chain is not None:
            assert KEY not in repr(chain)
            chain = chain.__cause__ or chain.__context__
    assert KEY not in repr(made) + repr(made.client) + made.identity


def test_keys_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    assert key_from("") == ""
    monkeypatch.delenv("THE_KEY", raising=False)
    with pytest.raises(UserError, match="environment variable THE_KEY is not set"):
        key_from("THE_KEY")
    for value in (f"{KEY}\nX-Header: 1", f"{KEY} x", f"{KEY}é"):
        monkeypatch.setenv("THE_KEY", value)
        with pytest.raises(UserError, match="THE_KEY holds no key") as caught:
            key_from("THE_KEY")
        assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("localhost:8000/v1", "write a URL"),
        ("ftp://x/v1", "write a URL"),
        ("http:///v1", "write a URL"),
        ("http://x:port/v1", "write a URL"),
        ("http://x /v1", "write a URL"),
        (f"http://me:{KEY}@host/v1", "the endpoint at host has a password in its URL"),
    ],
)
def test_addresses_that_cannot_be_used(url: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        EndpointJudge("any-model", url)
    assert KEY not in str(caught.value)


def test_nobody_listens() -> None:
    made = EndpointJudge("any-model", "http://127.0.0.1:9/v1", retries=0)
    with pytest.raises(UserError, match=r"in 1 attempts; the last one: .*refused"):
        answers(made)


def test_several_are_asked_at_once_and_answers_keep_their_places(endpoint: Endpoint) -> None:
    def reply(request: dict[str, Any]) -> Reply:
        number = int(request["messages"][0]["content"].split()[-1])
        answer = completion("A" if number % 2 else "B")
        answer.delay = 0.05 - 0.01 * number  # the first ones come last
        return answer

    endpoint.replies = reply
    made = judge(endpoint, concurrency=3)
    found = answers(made, *(question(str(number)) for number in range(5)))
    assert found == [(float(number % 2), float(1 - number % 2)) for number in range(5)]
    assert 2 <= endpoint.most_at_once <= 3


def test_a_failure_ends_the_batch_and_keeps_what_was_answered(
    endpoint: Endpoint, tmp_path: Path
) -> None:
    def reply(request: dict[str, Any]) -> Reply:
        return Reply("no", 403) if "2" in request["messages"][0]["content"] else completion("A")

    endpoint.replies = reply
    questions = [question(str(number)) for number in range(6)]
    with pytest.raises(UserError, match="status 403"):
        Remembered(judge(endpoint, concurrency=1), DiskCache(tmp_path))(questions)
    asked = len(endpoint.requests)
    assert asked == 3  # the rest was dropped
    endpoint.replies = lambda _: completion("A")
    Remembered(judge(endpoint), DiskCache(tmp_path))(questions[:2])
    assert len(endpoint.requests) == asked


def test_pauses_grow_and_are_spread() -> None:
    assert [backoff(attempt, 1.0) for attempt in range(4)] == [0.5, 1.0, 2.0, 4.0]
    assert backoff(2, 0.0) == 1.0
    assert backoff(50, 1.0) == LONGEST_PAUSE


def test_retry_after_is_a_number_or_a_date() -> None:
    assert retry_after(None, 0.0) is None
    assert retry_after("1.5", 0.0) == 1.5
    assert retry_after("-3", 0.0) == 0.0
    assert retry_after("soon", 0.0) is None
    assert retry_after("Thu, 01 Jan 1970 00:01:00 GMT", 50.0) == 10.0


def test_the_first_line_that_says_anything() -> None:
    assert first_line("\n \n  one  \ntwo") == "one"
    assert first_line("") == ""
    assert len(first_line("x" * 1000)) == 200
