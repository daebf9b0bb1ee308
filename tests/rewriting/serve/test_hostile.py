"""Some hundreds of hostile requests; `python -m tests.rewriting.serve.hostile` sends thousands."""

import io
import logging

from tests.rewriting.serve.hostile import everything_logged, run
from tests.rewriting.serve.toys import Served, Site


def test_hostile_requests_are_refused_and_leave_no_trace() -> None:
    ways, wrong = run(300)
    assert wrong == [], wrong[0]
    assert ways["200"] > 30
    assert sum(ways[status] for status in ("400", "413", "415", "421", "422")) > 100


def test_what_uvicorn_logs_is_seen() -> None:
    """Otherwise the test above could not fail by a traceback."""
    stream = io.StringIO()
    with Served(Site()), everything_logged(stream):
        logging.getLogger("uvicorn.error").error("Traceback")
    assert stream.getvalue() == "Traceback\n"
