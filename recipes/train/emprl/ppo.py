"""The second stage of `train.py emprl`: PPO on the levels of empathy of the human responses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from policies.training.ppo.settings import Settings
from recipes.shared.cards import command, write_card
from recipes.shared.reinforcement import before_and_after, dev_exchanges, kept_figures, save_policy
from recipes.shared.settings import kl_penalty
from rewriting.exchange import Exchange
from rewriting.runtime.settings import given, lasting

if TYPE_CHECKING:
    from policies.generating.generator import Generator
    from recipes.train.emprl.recipe import Config
    from rewards.reward_sum import RewardSum
    from rewriting.data import Split


def check_sizes(config: Config, accelerator: Any) -> None:
    """What `policies.training.ppo.loop.train` would refuse, said at once."""
    from policies.training.ppo.loop import check_settings

    check_settings(given(Settings, config), accelerator, ["unknown"], range(config.dev_rows))


def check_rows(config: Config, splits: dict[Split, list[Exchange]]) -> None:
    """What the second stage would refuse of the data, said before the first."""
    from recipes.train.emprl.expected_targets import conversations

    if config.expected_targets:
        conversations(rows_of_steps(config, splits))


def rows_of_steps(config: Config, splits: dict[Split, list[Exchange]]) -> list[Exchange]:
    """No more than the steps will use: labelling costs as much as rewarding does."""
    from recipes.shared.sources import drawn

    used = config.steps * config.batch_size
    return drawn(splits["train"], used * config.balance, config.seed)


def build_reward(config: Config) -> RewardSum:
    from rewards.named import Models, build_rewards

    models = Models(identifier=config.identifier, batch_size=config.reward_batch_size or None)
    return build_rewards(config.rewards, models)


def reinforce(
    config: Config,
    generator: Generator,
    reward: RewardSum,
    splits: dict[Split, list[Exchange]],
    accelerator: Any,
) -> dict[str, Any]:
    """PPO against the generator as it is now; the policy goes to OUTPUT/policy."""
    from policies.training.ppo.loop import train
    from recipes.train.emprl.expected_targets import with_expected_targets
    from recipes.train.emprl.targets import balanced, with_targets
    from rewards.named import Models

    output = Path(config.output)
    rows = rows_of_steps(config, splits)
    dev = dev_exchanges(config, splits)
    file = (
        Path(config.target_levels_file).expanduser()
        if config.target_levels_file
        else output / "targets.jsonl"
    )
    labelled = with_targets([*rows, *dev], config.identifier, file)
    chosen = labelled[: len(rows)]
    if config.balance > 1:
        chosen = balanced(chosen, config.steps * config.batch_size, config.seed)
    if config.expected_targets:
        chosen = with_expected_targets(chosen, Models().sentence_encoder)
    generator.freeze_reference()
    result = train(
        generator,
        reward,
        chosen,
        given(Settings, config),
        output=output,
        accelerator=accelerator,
        kl=kl_penalty(config),
        rate_factors={"value_head": config.value_rate_factor},
        dev_exchanges=labelled[len(rows) :],
        same=lasting(config),
        title="emprl",
    )
    figures = kept_figures(result) | {"rows": len(chosen)}
    if accelerator.is_main_process:
        save_policy(config, generator, output / "policy")
        write_card(output / "policy", config, figures, card(config, generator, figures))
    return figures


def card(config: Config, generator: Generator, figures: dict[str, Any]) -> str:
    from recipes.train.emprl.sft import describe

    return CARD.format(
        model=generator.model_name,
        adapter=describe(generator.settings),
        data=config.data,
        rows=figures["rows"],
        rewards=config.rewards,
        identifier=config.identifier,
        expected=EXPECTED if config.expected_targets else "",
        start=config.from_policy if config.stage == "ppo" else "its own first stage",
        steps=config.steps,
        batch=config.batch_size,
        kl=config.kl_weight,
        command=command("emprl", config),
        temperature=config.temperature,
        top_p=config.top_p,
        results=before_and_after(figures) or "Not measured: the run had no dev exchanges.",
    )


EXPECTED = """, or rather
those that people show on average in such a conversation"""
CARD = """# emprl: a generator trained towards the empathy of human responses

EmpRL (arXiv 2408.02976) on `{model}`: {adapter}, trained on human responses and then by PPO on the
probability that a response has the human one's levels of the three mechanisms of empathy{expected}.

- Data: {rows} exchanges drawn from the train part of {data}. Start: {start}.
- PPO: {steps} steps of {batch} responses; {kl} per nat of KL to the start.
- Rewards: `{rewards}`, by the identifier `{identifier}`
- Command: `{command}`
- In use it samples at temperature {temperature} with top-p {top_p}.

## Results
{results}

## Limits
An identifier reads much of the surface of a reply (docs/audit.md): a response with the right levels
may still miss the point. A small model; it makes things up. What it
writes has to be read by a person before anybody in distress sees it. Not clinically validated.
"""
