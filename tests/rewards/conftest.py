"""A server that stands in for a model behind an endpoint."""

from collections.abc import Iterator

import pytest

from tests.rewards.judge.server import Endpoint, serving


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with serving() as server:
        yield server
