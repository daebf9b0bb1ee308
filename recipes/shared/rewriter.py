"""Who rewrites, by name, and how many candidates there are: `rewriting rewrite` and `serve`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from recipes.shared.gated import Safety
from recipes.shared.settings import LENDING_REWARDS, PARTNER_REWARDS

if TYPE_CHECKING:
    from policies.best_of import BestOf
    from policies.gated import GatedPolicy
    from rewriting.loop import Policy
    from rewriting.safety import Classifier

MARGIN = 0.5
CANDIDATES_HELP = (
    "How many rewrites of each row are tried; the best one is written. 0 means 12 for nearest, 4 "
    "for a policy that edits replies and 1 for any other."
)
MARGIN_HELP = (
    "How much more reward a rewrite has to earn than the reply as it was; otherwise the reply "
    f"stays. {MARGIN} with several candidates and the default rewards; with rewards of your own "
    "the reply competes only if you give a margin."
)


@dataclass(frozen=True, slots=True)
class Rewriter:
    """Who rewrites, by name, how many candidates of each row there are (0: by the kind of policy),
    what ranks them, and by how much a rewrite has to beat the reply as it was."""

    policy: str
    num_candidates: int = 0
    margin: float | None = None
    rewards: Mapping[Any, Any] | str | None = None
    safety: Safety = field(default_factory=Safety)
    reward_batch_size: int = 0

    def load(self) -> Policy | BestOf:
        """The policy; with candidates or rewards, the best of its samples and their rewards."""
        from policies.named import default_candidates, load_bare_policy

        count = self.num_candidates or default_candidates(self.policy)
        if count == 1 and self.rewards is None and self.margin is None:
            return load_bare_policy(self.policy)
        from policies.best_of import BestOf
        from rewards.named import Models, build_rewards

        models = Models(batch_size=self.reward_batch_size or None)
        scorer = build_rewards(self.rewards or rewards_for(self.policy), models)
        default = MARGIN if self.rewards is None and count > 1 else None
        margin = default if self.margin is None else self.margin
        return BestOf(load_bare_policy(self.policy), scorer, count, margin=margin)


def load_rewriter(
    policy: str = "bank",
    *,
    num_candidates: int = 0,
    margin: float | None = None,
    rewards: Mapping[Any, Any] | str | None = None,
    reward_batch_size: int = 0,
    classifier: str | Classifier | None = None,
    help_text: str | None = None,
    allow_crisis: bool = False,
) -> GatedPolicy:
    """What the command `rewriting rewrite` rewrites with, and its defaults: candidates of a policy,
    ranked by rewards, behind the safety gate with all its readers.

    The arguments are the command's flags, which docs/rewriting.md explains. From Python, rewards
    may be a mapping as `rewards.build_rewards` takes it, and classifier a function.
    """
    from policies.gated import GatedPolicy
    from policies.named import check_policy_name

    check_policy_name(policy)
    safety = Safety(classifier, help_text, allow_crisis)
    guard = safety.guard()
    who = Rewriter(policy, num_candidates, margin, rewards, safety, reward_batch_size)
    return GatedPolicy(who.load(), guard)


def rewards_for(policy: str) -> str:
    """What ranks candidates unless told otherwise. A sentence of the bank was written for somebody
    else, so it has to be surer to be welcome here than one that was written for this post."""
    from policies.named import lends

    return LENDING_REWARDS if lends(policy) else PARTNER_REWARDS
