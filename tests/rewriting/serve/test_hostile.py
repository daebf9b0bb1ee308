"""Some hundreds of hostile requests; `python -m tests.rewriting.serve.hostile` sends thousands."""

from tests.rewriting.serve.hostile import run


def test_hostile_requests_are_refused_and_leave_no_trace() -> None:
    ways, wrong = run(300)
    assert wrong == [], wrong[0]
    assert ways["200"] > 30
    assert sum(ways[status] for status in ("400", "413", "415", "421", "422")) > 100
