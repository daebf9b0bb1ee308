"""Models that forget what lies behind a window are refused where it is too short, only there."""

from typing import Any

import pytest
import torch

from policies.editing.agent import EditAgent
from policies.editing.settings import EditSettings
from policies.generating.generator import Generator
from policies.generating.models import CausalModel
from policies.generating.settings import GeneratorSettings
from policies.reading.cached_reading import Reading
from policies.reading.windows import attention_window, check_window
from rewriting.errors import UserError
from rewriting.runtime.language_models.backbone import Backbone
from tests.policies.editing.tiny_agents import STATES, tiny_backbone
from tests.tiny_lm import SIZES, tiny_tokenizer


def tiny_gemma(window: int) -> Any:
    """Every other layer looks back over a window, as in Gemma 3."""
    from transformers import Gemma3ForCausalLM, Gemma3TextConfig

    torch.manual_seed(0)
    config = Gemma3TextConfig(
        **SIZES,
        num_hidden_layers=2,
        num_key_value_heads=1,
        head_dim=8,
        max_position_embeddings=256,
        sliding_window=window,
        layer_types=["sliding_attention", "full_attention"],
        initializer_range=0.5,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
    )
    return Gemma3ForCausalLM(config).eval()


def agent_on(model: Any, **settings: int) -> EditAgent:
    backbone = Backbone(model, tiny_tokenizer(), name="tiny-gemma")
    return EditAgent(backbone, EditSettings(rank=2, head_width=8, **settings))


@torch.no_grad()
def last_logits(model: Any, prompts: list[list[int]], words: list[list[int]]) -> torch.Tensor:
    reading = Reading(model)
    reading.read(prompts)
    piece = reading.read(words)
    return piece.logits(range(len(words)), [len(row) - 1 for row in words])


@pytest.mark.parametrize(("window", "exact"), [(16, False), (64, True)])
def test_a_short_window_reads_a_row_differently_in_a_batch(window: int, exact: bool) -> None:
    model = tiny_gemma(window)
    short, long = list(range(5, 17)), list(range(10, 50))
    alone = last_logits(model, [short], [[9, 8, 7]])[0]
    together = last_logits(model, [short, long], [[9, 8, 7], [7, 8, 9]])[0]
    assert torch.allclose(alone, together, atol=1e-4) is exact


def test_an_edit_policy_refuses_a_window_shorter_than_what_it_reads() -> None:
    with pytest.raises(UserError) as refused:
        agent_on(tiny_gemma(32), max_prompt_tokens=160, max_new_tokens=12)
    message = str(refused.value)
    assert "\n" not in message
    assert "tiny-gemma has layers that look back over 32 tokens" in message
    assert "Lower max_prompt_tokens or max_new_tokens" in message


def test_a_window_that_is_long_enough_serves_an_edit_policy_exactly() -> None:
    agent = agent_on(tiny_gemma(250), max_prompt_tokens=160, max_new_tokens=12)
    actions, together = agent.sample(STATES, [1, 2, 3, 4])
    assert any(action.tokens for action in actions)
    for row, (state, action) in enumerate(zip(STATES, actions, strict=True)):
        alone = agent.log_probs([state], [action])
        assert torch.allclose(alone.position_B[0], together.position_B[row], atol=1e-4)
        assert torch.allclose(alone.tokens[0], together.tokens[row], atol=1e-4)


@pytest.mark.parametrize(("window", "served"), [(88, False), (89, True)])
def test_a_generator_needs_a_window_for_prefix_context_and_response(
    window: int, served: bool
) -> None:
    settings = GeneratorSettings(num_virtual_tokens=3, max_context_tokens=80, max_new_tokens=6)
    model = CausalModel(tiny_gemma(window), tiny_tokenizer())
    if served:
        Generator(model, settings, model_name="tiny-gemma")
        return
    with pytest.raises(UserError, match=r"over 88 tokens, .* up to 89.*Lower max_con"):
        Generator(model, settings, model_name="tiny-gemma")


def test_a_window_that_is_switched_off_is_none() -> None:
    from transformers import Qwen2Config, Qwen2ForCausalLM

    sizes = {"vocab_size": 9, "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "sliding_window": 16}
    for used, expected in ((False, None), (True, 16)):
        config = Qwen2Config(**sizes, **heads, use_sliding_window=used, max_window_layers=1)
        assert attention_window(Qwen2ForCausalLM(config)) == expected
    assert attention_window(tiny_backbone("llama").model) is None
    assert attention_window(tiny_backbone("gpt2").model) is None


def test_the_windows_of_mistral_and_gpt_neo_are_found() -> None:
    from transformers import GPTNeoConfig, GPTNeoForCausalLM, MistralConfig, MistralForCausalLM

    sizes = {"vocab_size": 9, "hidden_size": 8, "intermediate_size": 8}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "num_hidden_layers": 1}
    mistral = MistralForCausalLM(MistralConfig(**sizes, **heads, sliding_window=24))
    assert attention_window(mistral) == 24
    neo = GPTNeoConfig(
        **sizes,
        num_layers=2,
        num_heads=2,
        attention_types=[[["global", "local"], 1]],
        window_size=20,
    )
    assert attention_window(GPTNeoForCausalLM(neo)) == 20


def test_a_model_with_a_state_instead_of_a_cache_is_refused() -> None:
    from transformers import MambaConfig, MambaForCausalLM

    config = MambaConfig(vocab_size=9, hidden_size=8, state_size=4, num_hidden_layers=1)
    with pytest.raises(UserError, match=r"tiny-mamba has .* layers, which read the padding"):
        check_window(MambaForCausalLM(config), "tiny-mamba", 10, "max_prompt_tokens")
