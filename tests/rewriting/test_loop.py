"""The loop shows a policy every span once, in order, and puts its edits where they belong."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewriting.edits import Edit, apply_edits
from rewriting.exchange import Exchange
from rewriting.loop import EditState, rewrite_by_edits, spans

SIX = Exchange("Help.", "A one. B two. C three. D four. E five. F six.")


class Scripted:
    """Proposes the given edits, one a round, and keeps when they run out."""

    def __init__(self, *edits: Edit) -> None:
        self.edits = list(edits)
        self.seen: list[EditState] = []

    def propose(self, states: Sequence[EditState], *, seed: int) -> list[Edit]:
        self.seen += states
        return [self.edits.pop(0) if self.edits else Edit.keep() for _ in states]


@given(st.integers(0, 40), st.integers(1, 9))
def test_spans_cover_every_sentence_once(num_sentences: int, span_length: int) -> None:
    covered = [index for span in spans(num_sentences, span_length) for index in span]
    assert covered == list(range(num_sentences))
    assert all(len(span) == span_length for span in spans(num_sentences, span_length)[:-1])


def test_a_span_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one sentence"):
        spans(3, 0)


def test_keeping_everything_gives_back_the_response() -> None:
    policy = Scripted()
    (rewrite,) = rewrite_by_edits(policy, [SIX], seed=0, span_length=4)
    assert rewrite.rewritten_response == SIX.response_post
    assert rewrite.edits == ()
    assert not rewrite.changed
    assert [state.span for state in policy.seen] == [
        ("A one.", "B two.", "C three.", "D four."),
        ("E five.", "F six."),
    ]


def test_edits_of_a_later_span_count_from_its_start_and_after_insertions() -> None:
    policy = Scripted(Edit.insert(0, "New."), Edit.replace(1, "Six."))
    (rewrite,) = rewrite_by_edits(policy, [SIX], seed=0, span_length=4)
    assert rewrite.rewritten_response == "New. A one. B two. C three. D four. E five. Six."
    assert rewrite.edits == (Edit.insert(0, "New."), Edit.replace(6, "Six."))
    assert apply_edits(SIX.response_post, rewrite.edits) == rewrite.rewritten_response


def test_several_edits_in_a_span_until_it_keeps() -> None:
    policy = Scripted(Edit.insert(1, "X."), Edit.insert(2, "Y."), Edit.keep(), Edit.keep())
    exchange = Exchange("Help.", "Ann came. Bob left.")
    (rewrite,) = rewrite_by_edits(policy, [exchange], seed=0, span_length=4, max_edits=3)
    assert rewrite.rewritten_response == "Ann came. X. Y. Bob left."
    assert [len(state.span) for state in policy.seen] == [2, 3, 4]
    assert [state.turn for state in policy.seen] == [0, 1, 2]


def test_an_empty_response_can_be_written_into() -> None:
    (rewrite,) = rewrite_by_edits(Scripted(Edit.insert(0, "Hi.")), [Exchange("Help.", "")], seed=0)
    assert rewrite.rewritten_response == "Hi."


def test_a_position_outside_the_span_is_refused() -> None:
    with pytest.raises(ValueError, match="where there are 4 sentences"):
        rewrite_by_edits(Scripted(Edit.replace(4, "x")), [SIX], seed=0, span_length=4)


def test_at_least_one_edit_is_allowed() -> None:
    with pytest.raises(ValueError, match="at least one edit"):
        rewrite_by_edits(Scripted(), [SIX], seed=0, max_edits=0)


def test_a_policy_must_answer_every_state() -> None:
    class Lazy:
        def propose(self, states: Sequence[EditState], *, seed: int) -> list[Edit]:
            return []

    with pytest.raises(ValueError, match="0 edits for 1 states"):
        rewrite_by_edits(Lazy(), [SIX], seed=0)
