"""A step of PARTNER as the released code does it, for partner_step.py to measure.

What it does and what of that is charged is said there. Its errors (signs, wrong positions, constant
terms) are not repeated: they cost nothing.

Legend: B rows, T tokens of a text, N of its end, V vocabulary, D width.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import yaml
from stopwatch import Stopwatch
from torch import Tensor, nn

from policies.editing.agent import EditAgent
from policies.editing.prompt import instruction
from policies.training.reinforce.rollouts import Episode, Turn, reward_columns
from recipes.train.partner.recipe import Config
from rewriting.data.columns import column_names
from rewriting.runtime.cache import ScoreCache
from rewriting.runtime.language_models.adapters import attention_layers
from rewriting.runtime.models.named import load_causal

Columns = Mapping[str, Any]


class Released:
    """The same step on given episodes, as the released code would do it.

    The tokens are those that our policy drew, so that both ways write and score the same texts:
    a token is sampled here too, and then the given one is taken. agent: knows the prompts; it is
    not asked for anything else.
    """

    def __init__(self, config: Config, agent: EditAgent, *, adapter: bool = False) -> None:
        self.config, self.agent = config, agent
        self.policy = new_model(config)
        if adapter:
            from peft import LoraConfig, get_peft_model

            layers = list(attention_layers(self.policy))
            lora = LoraConfig(r=config.rank, lora_alpha=config.alpha, target_modules=layers)
            self.policy = get_peft_model(self.policy, lora)
        else:
            self.policy.requires_grad_(True)
        width = self.policy.config.get_text_config().hidden_size
        self.head = nn.Linear(width, 2).to(self.policy.device)  # it knows two positions
        self.trained = [p for p in self.policy.parameters() if p.requires_grad]
        self.trained += self.head.parameters()
        self.optimizer = torch.optim.AdamW(self.trained, lr=1e-6)
        self.reference = new_model(config)
        self.rewards = ReleasedRewards(config, agent.backbone.tokens, agent.backbone.start_token)

    def step(self, episodes: Sequence[Episode], clock: Stopwatch) -> None:
        turns = [turn for episode in episodes for turn in episode.turns]
        with clock("sampling"), torch.no_grad():
            for turn in turns:
                self.sample(turn)
        with clock("rewards"), torch.no_grad():
            for episode in episodes:
                self.rewards(reward_columns([episode], column_names([episode.exchange])))
        size = self.config.micro_batch_size
        batches = [turns[start : start + size] for start in range(0, len(turns), size)]
        with clock("reference"), torch.no_grad():
            for batch in batches:
                self.log_probs(self.reference, batch)
        with clock("update"):
            for batch in batches:
                advantages_B = self.head.weight.new_tensor(any_advantages(len(batch)))
                (-advantages_B * self.log_probs(self.policy, batch)).sum().backward()
            nn.utils.clip_grad_norm_(self.trained, self.config.max_grad_norm)
            self.optimizer.step()
            self.optimizer.zero_grad()

    def sample(self, turn: Turn) -> None:
        prompt, lead = self.texts(turn)
        hidden_D = read(self.policy, prompt, hidden=True)[1][-1]
        self.head(hidden_D).argmax()
        for number in range(len(turn.action.tokens)):
            logits_TV, _ = read(self.policy, [*prompt, *lead, *turn.action.tokens[:number]])
            torch.multinomial(logits_TV[-1].softmax(dim=-1), 1)

    def log_probs(self, model: Any, turns: Sequence[Turn]) -> Tensor:
        """[B], of each position, at the prompt's last token, and sentence; one padded batch."""
        texts = [self.texts(turn) for turn in turns]
        rows = [
            torch.tensor([*prompt, *lead, *turn.action.tokens])
            for (prompt, lead), turn in zip(texts, turns, strict=True)
        ]
        ids_BT = nn.utils.rnn.pad_sequence(rows, batch_first=True).to(model.device)
        ones = [torch.ones_like(row) for row in rows]
        mask_BT = nn.utils.rnn.pad_sequence(ones, batch_first=True).to(model.device)
        output = model(
            input_ids=ids_BT, attention_mask=mask_BT, use_cache=False, output_hidden_states=True
        )
        found = []
        for number, ((prompt, _), turn) in enumerate(zip(texts, turns, strict=True)):
            hidden_D = output.hidden_states[-1][number, len(prompt) - 1]
            position = self.head(hidden_D).log_softmax(dim=-1)[0]
            logits_TV = output.logits[number, : len(rows[number])]
            found.append(position + tail_log_prob(logits_TV, turn.action.tokens))
        return torch.stack(found)

    def texts(self, turn: Turn) -> tuple[list[int], list[int]]:
        """The prompt, and what names the position; nothing for keep."""
        prompt = self.agent.prompt(turn.state)
        if not turn.action.tokens:
            return list(prompt.tokens), []
        words = instruction(turn.action.position, len(prompt.ends))
        return list(prompt.tokens), self.agent.backbone.tokens(words)


class ReleasedRewards:
    """The terms by name, one row at a time, each on models of its own, nothing remembered."""

    def __init__(self, config: Config, tokens: Callable[[str], list[int]], start: int) -> None:
        from rewards.named import Models

        self.tokens, self.start = tokens, start
        self.mapping: dict[str, Any] = yaml.safe_load(config.rewards)
        copies = {"fluency": 1, "perplexity": 1, "mutual_information": 2}
        self.language_models = {
            name: [new_model(config) for _ in range(copies[name])]
            for name in self.mapping
            if name in copies
        }
        self.models = Models(identifier=config.identifier, batch_size=1)
        self.terms: dict[str, Any] = {}
        self.memories: list[ScoreCache[Any, Any]] = []
        self.identifier: Any = None
        if "empathy_change" in self.mapping:
            self.identifier = separate(self.models.identifier)

    def __call__(self, columns: Columns) -> None:
        """What comes out does not matter here."""
        (rewritten,), (original,) = columns["completions"], columns["response_post"]
        (seeker,) = columns["seeker_post"]
        for name, value in self.mapping.items():
            if name == "empathy_change":
                for response in (original, rewritten):
                    self.forget()
                    self.identifier.assess([seeker], [response], rationales=False)
            elif name == "mutual_information":
                options = value if isinstance(value, dict) else {}
                self.mutual_information(seeker, rewritten, options.get("forward_weight", 0.5))
            elif name in self.language_models:
                self.log_prob(self.language_models[name][0], "", rewritten)
            else:
                self.other(name, value, columns)
        if not self.memories:  # by now everything is loaded
            self.memories = [thing for thing in gc.get_objects() if type(thing) is ScoreCache]

    def forget(self) -> None:
        for memory in self.memories:
            memory.forget()

    def mutual_information(self, seeker: str, rewritten: str, forward_weight: float) -> None:
        from rewards.terms.mutual_information import backward_prefixes, forward_prefixes

        forward, backward = self.language_models["mutual_information"]
        if forward_weight:
            self.log_prob(forward, forward_prefixes([seeker])[0], rewritten)
        if forward_weight < 1:
            self.log_prob(backward, backward_prefixes([rewritten])[0], seeker)

    def log_prob(self, model: Any, prefix: str, text: str) -> Tensor:
        ids = self.tokens(text)
        return tail_log_prob(read(model, [self.start, *self.tokens(prefix), *ids])[0], ids)

    def other(self, name: str, value: Any, columns: Columns) -> None:
        """Ours, one text at a time, loaded once and remembering nothing of earlier rows."""
        from rewards.named import build_rewards

        if name not in self.terms:
            self.terms[name] = build_rewards({name: value}, self.models)
        self.forget()
        self.terms[name].score(**columns)


def new_model(config: Config) -> Any:
    """A copy of its own. Untrained or not: speed does not depend on the weights."""
    return load_causal(config.model)[0].requires_grad_(False).eval()


def separate(identifier: Any) -> Any:
    """The papers' six encoders, where the identifier is of that kind."""
    from scoring import papers_arrangement

    from rewards.identifiers.epitome.identifier import EpitomeIdentifier

    known = isinstance(identifier, EpitomeIdentifier)
    return papers_arrangement(identifier) if known else identifier


def read(model: Any, ids: Sequence[int], *, hidden: bool = False) -> tuple[Tensor, Any]:
    """Logits [T, V] and, if asked for, the last hidden states [T, D] of one text, all of it."""
    ids_1T = torch.tensor([ids[-model.config.max_position_embeddings :]], device=model.device)
    output = model(input_ids=ids_1T, use_cache=False, output_hidden_states=hidden)
    return output.logits[0], output.hidden_states[-1][0] if hidden else None


def tail_log_prob(logits_TV: Tensor, tokens: Sequence[int]) -> Tensor:
    """log p of the tokens that a text ends with; 0 of none."""
    log_probs_TV = logits_TV.float().log_softmax(dim=-1)
    count = min(len(tokens), len(logits_TV) - 1)
    targets_N = torch.tensor(tokens[len(tokens) - count :], dtype=torch.long)
    places = slice(len(logits_TV) - 1 - count, len(logits_TV) - 1)
    return log_probs_TV[places].gather(1, targets_N.to(logits_TV.device)[:, None]).sum()


def any_advantages(count: int) -> list[float]:
    """Good and bad in turn, where no reward says it: the time does not depend on them."""
    return [1.0 if number % 2 else -1.0 for number in range(count)]
