"""Fields of TRL's configs: which pass, which are refused, and how that is said."""

from dataclasses import fields
from typing import Any

import pytest
import trl

from recipes.train.grpo.recipe import Config
from recipes.train.grpo.trl_settings import FIXED, OWNED, read_trl
from rewriting import UserError


@pytest.mark.parametrize("algorithm", ["grpo", "rloo"])
def test_a_mapping_or_a_text_passes(algorithm: str) -> None:
    expected = {"gradient_accumulation_steps": 4, "warmup_steps": 2, "max_grad_norm": 1.0}
    assert read_trl(expected, algorithm) == expected
    text = '{"gradient_accumulation_steps": 4, "warmup_steps": 2, "max_grad_norm": 1}'
    assert read_trl(text, algorithm) == expected
    assert read_trl("{}", algorithm) == read_trl("", algorithm) == {}


def test_numbers_that_yaml_takes_for_texts_are_numbers() -> None:
    assert read_trl("{epsilon: 1e-2, vllm_mode: colocate}", "grpo") == {
        "epsilon": 0.01,
        "vllm_mode": "colocate",
    }
    passed = {"scale_rewards": False, "optim": "adamw_torch", "delta": None}
    assert read_trl(passed, "grpo") == passed


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"los_type": "dapo"}, r"GRPOConfig has no field 'los_type'. Did you mean loss_type\?$"),
        ({"xyzzy": 1}, "TRL's documentation lists its fields"),
        ({"beta": 0.1}, "beta is set by the recipe's kl_weight"),
        ({"num_generations": 8}, "num_samples"),
        ({"remove_unused_columns": True}, "cannot be set: the rewards need every column"),
        ({"num_iterations": "two"}, "num_iterations must be a whole number, not 'two'"),
        ({"log_completions": 3}, "log_completions must be true or false, not 3"),
        ({"epsilon": "small"}, "epsilon must be a number, not 'small'"),
        ("loss_type", "trl must be a mapping"),
        ("{loss_type: [", "cannot be read"),
    ],
)
def test_what_cannot_pass_is_said_in_one_line(given: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_trl(given, "grpo")


def test_a_field_of_the_other_algorithm_is_refused() -> None:
    assert read_trl("{loss_type: dapo}", "grpo")
    with pytest.raises(UserError, match="RLOOConfig has no field 'loss_type'"):
        read_trl("{loss_type: dapo}", "rloo")


def test_the_names_that_are_refused_exist() -> None:
    known = {field.name for field in fields(trl.GRPOConfig)}
    assert set(OWNED) | set(FIXED) <= known
    ours = {field.name for field in fields(Config)}
    named = {word for words in OWNED.values() for word in words.split() if word != "and"}
    assert named <= ours
