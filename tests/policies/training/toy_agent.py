"""An agent of a few numbers: every action can be listed, and its probability worked out by hand.

A span's position has a logit for each kind: insert at the front, insert elsewhere, replace, keep.
A sentence is two tokens, drawn from tables: the first by the kind of position, the second by the
first. So a gradient that mixes up positions, rows or tokens shows.
"""

from collections.abc import Sequence
from itertools import product

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from policies.editing.actions import Action, LogProbs
from rewriting.edits import num_positions
from rewriting.loop import EditState

WORDS = ("Go", "Oh"), ("now.", "dear.")


class ToyAgent:
    """position_logits [4], first_logits [4, 2], second_logits [2, 2]; a frozen copy of each."""

    def __init__(
        self,
        position: Sequence[float] = (0.0, 0.0, 0.0, 0.0),
        first: Sequence[float] = (0.0, 0.0),
        second: Sequence[float] = (0.0, 0.0),
    ) -> None:
        self.module = nn.Module()
        self.module.position = nn.Parameter(torch.tensor(position))
        self.module.first = nn.Parameter(torch.tensor([list(first)] * 4))
        self.module.second = nn.Parameter(torch.tensor([list(second)] * 2))
        # The reference leans another way than the policy, so that the KL is not 0.
        tables = {"position": (0.3, 0.0, -0.2, 0.1), "first": [(0.5, 0.0)] * 4}
        tables["second"] = [(0.0, 0.4), (0.2, 0.0)]
        self.reference = {name: torch.tensor(table) for name, table in tables.items()}

    def tables(self, role: str = "policy") -> tuple[Tensor, Tensor, Tensor]:
        if role == "reference":
            return tuple(self.reference[name] for name in ("position", "first", "second"))
        return self.module.position, self.module.first, self.module.second

    def sample(
        self,
        states: Sequence[EditState],
        seeds: Sequence[int],
        position_seeds: Sequence[int] | None = None,
    ) -> tuple[list[Action], LogProbs]:
        actions = []
        with torch.no_grad():
            position, first, second = self.tables()
            for number, (state, seed) in enumerate(zip(states, seeds, strict=True)):
                generator = torch.Generator().manual_seed(seed)
                chooser = generator
                if position_seeds is not None:
                    chooser = torch.Generator().manual_seed(position_seeds[number])
                place = draw(position[kinds(state)], chooser)
                if place == num_positions(len(state.span)) - 1:
                    actions.append(Action(place))
                    continue
                a = draw(first[kinds(state)[place]], generator)
                actions.append(action(place, a, draw(second[a], generator)))
            return actions, self.log_probs(states, actions)

    def log_probs(
        self, states: Sequence[EditState], actions: Sequence[Action], *, role: str = "policy"
    ) -> LogProbs:
        position, first, second = self.tables(role)
        kinds_BP = pad_sequence([torch.tensor(kinds(s)) for s in states], True, padding_value=-1)
        logits_BP = position[kinds_BP].masked_fill(kinds_BP < 0, -1e9)
        log_prob_BP = logits_BP.log_softmax(-1)
        chosen_B1 = torch.tensor([[act.position] for act in actions])
        kind_B = kinds_BP.gather(1, chosen_B1)[:, 0]
        pairs = torch.tensor([act.tokens or (0, 0) for act in actions])
        a_B, b_B = pairs[:, 0], pairs[:, 1]
        tokens_B2 = torch.stack(
            [first.log_softmax(-1)[kind_B, a_B], second.log_softmax(-1)[a_B, b_B]], dim=-1
        )
        return LogProbs(
            log_prob_BP.gather(1, chosen_B1)[:, 0],
            [row[: len(act.tokens)] for row, act in zip(tokens_B2, actions, strict=True)],
            -(log_prob_BP.exp() * log_prob_BP).sum(-1),
        )


def kinds(state: EditState) -> list[int]:
    """For each position of a span of n sentences its row in the tables."""
    n = len(state.span)
    return [0] + [1] * n + [2] * n + [3]


def action(place: int, a: int, b: int) -> Action:
    return Action(place, (a, b), f"{WORDS[0][a]} {WORDS[1][b]}")


def every_action(num_sentences: int) -> list[Action]:
    """All that can be done to a span."""
    last = num_positions(num_sentences) - 1
    written = [action(*place) for place in product(range(last), (0, 1), (0, 1))]
    return [*written, Action(last)]


def draw(logits: Tensor, generator: torch.Generator) -> int:
    return int(torch.multinomial(logits.softmax(-1), 1, generator=generator))


class ToyReward:
    """A reward by a function of (response, completion); remembers what it was called with."""

    def __init__(self, function: object = None) -> None:
        self.function = function or (lambda before, after: float("Oh dear." in after))
        self.called: list[dict[str, object]] = []

    def score(self, *, completions, update=False, response_post, **columns):  # type: ignore[no-untyped-def]
        from rewards.reward_sum import Scores

        self.called.append({"update": update, "completions": completions} | columns)
        pairs = zip(response_post, completions, strict=True)
        values = [self.function(*pair) for pair in pairs]  # type: ignore[operator]
        lengths = [float(len(text)) for text in completions]
        return Scores({"toy": values, "length": lengths}, {"toy": values}, values)
