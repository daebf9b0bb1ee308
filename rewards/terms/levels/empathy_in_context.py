"""`empathy_in_context`: the change in empathy, counted only as far as it fits the seeker's post."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rewards.identifiers.in_context.identifier import ContextualIdentifier
from rewards.terms.levels.empathy_change import EmpathyChange


class EmpathyInContext:
    """`empathy_change` by an identifier with a gate for context: −6 to 6, 0 for no change.

    What "I know how you feel." adds to a reply about gardening is nothing; what it adds to a reply
    to somebody in pain is less than what a sentence adds that is about this person's pain. An agent
    that says the same to everyone earns less than one that reads the post. As in `empathy_change`,
    originals are scored once, and `argmax=True` takes the called levels.

    In: completions, seeker_post, response_post. Out: −6 to 6.

        EmpathyInContext(ContextualIdentifier.load("rewards/shipped/context"))(
            completions=["Losing Rex must hurt."], seeker_post=["Rex died today."],
            response_post=["Ok."])
    """

    def __init__(
        self,
        identifier: ContextualIdentifier,
        *,
        argmax: bool = False,
        batch_size: int = 1,
        name: str = "empathy_in_context",
    ) -> None:
        self.__name__ = name
        self._change = EmpathyChange(identifier, argmax=argmax, batch_size=batch_size, name=name)

    def __call__(
        self,
        *,
        completions: Sequence[Any],
        seeker_post: Sequence[str],
        response_post: Sequence[str],
        log_extra: Callable[[str, Any], None] | None = None,
        **_: Any,
    ) -> list[float]:
        return self._change(
            completions=completions,
            seeker_post=seeker_post,
            response_post=response_post,
            log_extra=log_extra,
        )
