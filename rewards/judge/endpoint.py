"""A judge behind an OpenAI-compatible server: POST {endpoint}/chat/completions.

Where the server gives log-probabilities, they are read; a server that gives none says one answer,
which counts as certain. Anything but an answer of the scale is asked for once more and is then an
error, never a score.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, Final

from rewards.judge.client import (
    CONCURRENCY,
    RETRIES,
    TIMEOUT,
    Client,
    RefusedError,
    StoppedError,
    first_line,
    key_from,
)
from rewards.judge.question import Numbers, Question
from rewriting.errors import UserError

TOP_LOGPROBS: Final = 20  # what OpenAI's API allows at the most
MAX_TOKENS: Final = 4
AROUND: Final = " \t\r\n\"'`*()[]."  # what may stand around an answer


class UnreadableError(Exception):
    """The server answered something that is no answer to the question."""


class EndpointJudge:
    """A model behind a server, asked by several threads at once.

    endpoint: the base URL, which ends in /v1 for most servers. api_key_env: the name of the
    environment variable that holds the key; without one no key is sent. concurrency: how many
    requests are under way at the most. The other options are those of `Client`.
    """

    def __init__(
        self,
        model: str,
        endpoint: str,
        *,
        api_key_env: str = "",
        timeout: float = TIMEOUT,
        retries: int = RETRIES,
        concurrency: int = CONCURRENCY,
    ) -> None:
        address = f"{endpoint.rstrip('/')}/chat/completions"
        self.client = Client(address, key=key_from(api_key_env), timeout=timeout, retries=retries)
        self.model = model
        self.concurrency = concurrency
        self.name = model
        self.identity = f"{model} at {address}"
        self._with_logprobs = True

    def answers(self, questions: Sequence[Question]) -> Iterator[tuple[int, Numbers]]:
        """The probabilities of the allowed answers, in the order in which they come in.

        The first failure ends the whole batch: requests that have not begun are dropped, those that
        wait for their next attempt give up. What was answered until then is given out before the
        failure is raised.
        """
        stop = threading.Event()
        pool = ThreadPoolExecutor(max_workers=self.concurrency)
        try:
            places = {pool.submit(self._answer, q, stop): i for i, q in enumerate(questions)}
            failure: BaseException | None = None
            for future in as_completed(places):
                error = future.exception()
                if error is None:
                    yield places[future], future.result()
                elif not isinstance(error, StoppedError):
                    failure = failure or error
            if failure is not None:
                raise failure
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)

    def _answer(self, question: Question, stop: threading.Event) -> Numbers:
        try:
            return self._asked_twice(question, stop)
        except BaseException:
            stop.set()
            raise

    def _asked_twice(self, question: Question, stop: threading.Event) -> Numbers:
        """The answer. One that cannot be read is asked for once more."""
        try:
            return read_answer(self._said(question, stop), question.answers)
        except UnreadableError:
            pass
        try:
            return read_answer(self._said(question, stop), question.answers)
        except UnreadableError as error:
            raise UserError(
                f"{self.name} was asked twice for one of {', '.join(question.answers)} and gave "
                f"{error}. Ask for the answer alone in the rubric, or use another model."
            ) from None

    def _said(self, question: Question, stop: threading.Event) -> str:
        if self._with_logprobs:
            try:
                return self.client.post(self._request(question, logprobs=True), stop)
            except RefusedError as error:
                if error.status not in (400, 422) or "logprob" not in error.body.lower():
                    raise
                self._with_logprobs = False  # this server does not know them
        return self.client.post(self._request(question, logprobs=False), stop)

    def _request(self, question: Question, *, logprobs: bool) -> dict[str, Any]:
        request: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": "user", "content": question.prompt}],
            "max_tokens": MAX_TOKENS,
            "temperature": 0,
        }
        return request | ({"logprobs": True, "top_logprobs": TOP_LOGPROBS} if logprobs else {})


def read_answer(body: str, answers: Sequence[str]) -> Numbers:
    """The probabilities of the answers in what a server sent, or an UnreadableError."""
    try:
        choice = json.loads(body)["choices"][0]
        said = choice["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        raise UnreadableError(f"no chat completion: {first_line(body)!r}") from None
    probabilities = from_logprobs(choice.get("logprobs"), answers)
    if probabilities is not None:
        return probabilities
    answer = said.strip(AROUND) if isinstance(said, str) else None
    if answer not in answers:
        raise UnreadableError(f"{first_line(said) if isinstance(said, str) else said!r}")
    return tuple(float(one == answer) for one in answers)


def from_logprobs(logprobs: Any, answers: Sequence[str]) -> Numbers | None:
    """The probabilities of the answers at the first token that is no white space.

    None where the server gave none, or where no answer is among its likeliest tokens.
    """
    try:
        tokens = (one for one in logprobs["content"] if one["token"].strip())
        first = next(tokens)
        if first["token"].strip(AROUND) not in answers:  # a refusal: the text is read, and refused
            return None
        probabilities = tuple(_probability(first["top_logprobs"], answer) for answer in answers)
    except (KeyError, TypeError, StopIteration, AttributeError, ValueError):
        return None
    return probabilities if sum(probabilities) > 0 else None


def _probability(likeliest: Sequence[Mapping[str, Any]], answer: str) -> float:
    """The probability of an answer, with or without a space before it."""
    log_probs = [float(one["logprob"]) for one in likeliest if one["token"].strip() == answer]
    if any(map(math.isnan, log_probs)):
        raise ValueError("a log-probability is not a number")
    return math.fsum(math.exp(min(0.0, one)) for one in log_probs)
