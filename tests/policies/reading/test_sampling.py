"""Samples follow the distribution, row by row, whatever else is in the batch."""

import math

import pytest
import torch

from policies.reading.sampling import BLOCK, RowSampler, draw, nucleus, row_entropies, uniforms

LOGITS = torch.tensor([0.0, math.log(2), math.log(5), -torch.inf])  # 1/8, 2/8, 5/8, 0


def chosen(seeds: list[int], logits: torch.Tensor = LOGITS, **shape: float) -> torch.Tensor:
    sampler = RowSampler(seeds, 1, **shape)
    return sampler(torch.empty(len(seeds), 0), logits.expand(len(seeds), -1)).argmax(dim=-1)


def chi_square(tokens: torch.Tensor, expected: list[float]) -> float:
    counts = torch.bincount(tokens, minlength=len(expected))
    assert counts[[n == 0 for n in expected]].sum() == 0, "a token without probability was drawn"
    return sum((float(c) - e) ** 2 / e for c, e in zip(counts, expected, strict=True) if e)


def test_frequencies_match_the_probabilities() -> None:
    # Of 8,000 draws 1,000, 2,000 and 5,000 are expected. With two degrees of freedom chi-square
    # is above 13.8 once in a thousand times.
    assert chi_square(chosen(list(range(8000))), [1000, 2000, 5000, 0]) < 13.8


def test_temperature_shapes_the_distribution() -> None:
    # At temperature 1/2 the weights 1, 2, 5 become 1, 4, 25: of 30.
    tokens = chosen(list(range(9000)), temperature=0.5)
    assert chi_square(tokens, [300, 1200, 7500, 0]) < 13.8


def test_top_p_is_respected_and_what_is_left_shares_the_mass() -> None:
    # 5/8 alone is not 0.7 of the mass; with 2/8 it is more. The two share it 5 to 2.
    tokens = chosen(list(range(7000)), top_p=0.7)
    assert chi_square(tokens, [0, 2000, 5000, 0]) < 10.8  # one degree of freedom


def test_the_token_is_where_the_cumulative_probability_passes_the_number() -> None:
    # It does at 1/8, 3/8 and 8/8. Just below the end it is the last word that can be said.
    numbers = [0.0, 0.124, 0.126, 0.374, 0.376, 1 - 2**-53]
    uniform = torch.tensor(numbers, dtype=torch.float64)
    tokens, log_probs, _ = draw(LOGITS.expand(6, -1), uniform)
    assert tokens.tolist() == [0, 0, 1, 1, 2, 2]
    expected = [math.log(k / 8) for k in (1, 1, 2, 2, 5, 5)]
    assert log_probs.tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("size", [1, 5, BLOCK, BLOCK + 1, 5 * BLOCK, 5 * BLOCK + 77])
def test_blocks_of_the_vocabulary_change_nothing(size: int) -> None:
    torch.manual_seed(0)
    logits = 3 * torch.randn(200, size)
    logits[:, 1::7] = -torch.inf
    uniform = uniforms(list(range(200)), 1)[:, 0]
    tokens, log_probs, probabilities = draw(logits, uniform)
    exact = logits.double().log_softmax(dim=-1)
    mass = exact.exp().cumsum(dim=-1)
    assert torch.equal(tokens, torch.searchsorted(mass, uniform[:, None], right=True)[:, 0])
    assert torch.allclose(log_probs.double(), exact.gather(1, tokens[:, None])[:, 0], atol=2e-6)
    expected = torch.special.entr(exact.exp()).sum(dim=-1)
    found = row_entropies(logits, tokens, log_probs, probabilities)
    assert torch.allclose(found.double(), expected, atol=1e-5)


def test_a_block_without_probability_is_passed_over() -> None:
    logits = torch.full((3, 4 * BLOCK), -torch.inf)
    logits[:, BLOCK + 5] = 0.0
    logits[:, 3 * BLOCK + 9] = 0.0
    uniform = torch.tensor([0.0, 0.5, 1 - 2**-53], dtype=torch.float64)
    assert draw(logits, uniform)[0].tolist() == [BLOCK + 5, 3 * BLOCK + 9, 3 * BLOCK + 9]


def test_a_row_does_not_depend_on_its_batch() -> None:
    torch.manual_seed(0)
    logits = torch.randn(50, 2000)
    uniform = uniforms(list(range(50)), 1)[:, 0]
    together = draw(logits, uniform)[0]
    backwards = draw(logits.flip(0), uniforms(list(range(49, -1, -1)), 1)[:, 0])[0].flip(0)
    alone = torch.cat([draw(logits[[n]], uniforms([n], 1)[:, 0])[0] for n in range(50)])
    assert torch.equal(together, alone)
    assert torch.equal(together, backwards)
    assert len(set(together.tolist())) > 40


def test_the_numbers_of_a_row_are_its_own_and_differ_from_token_to_token() -> None:
    numbers = uniforms([7, 8, 7], 1000)
    assert torch.equal(numbers[0], numbers[2])
    assert len(set(numbers[:2].flatten().tolist())) == 2000
    # A longer row begins as a shorter one does.
    assert torch.equal(uniforms([7], 20)[0], numbers[0, :20])
    sampler = RowSampler([0], 2)
    first, second = (sampler(torch.empty(1, 0), torch.zeros(1, 1000)).argmax() for _ in range(2))
    assert first != second


def test_a_draw_is_exact_under_autocast() -> None:
    logits = torch.tensor([[21.0, 20.0, -torch.inf, 22.0]])
    with torch.autocast("cpu", dtype=torch.float16):
        tokens, log_probs, probabilities = draw(logits, torch.tensor([0.5], dtype=torch.float64))
        entropy = row_entropies(logits, tokens, log_probs, probabilities)
    exact = logits.double().softmax(dim=-1)
    assert entropy.item() == pytest.approx(float(torch.special.entr(exact).sum()), abs=1e-5)
    assert log_probs.item() == pytest.approx(float(exact[0, 3].log()), abs=1e-6)


@pytest.mark.parametrize(("top_p", "kept"), [(0.5, 1), (0.62, 1), (0.63, 2), (0.9, 3), (1.0, 3)])
def test_the_nucleus_is_the_smallest_set_of_its_mass(top_p: float, kept: int) -> None:
    # Probabilities 0.625, 0.25, 0.125, 0.
    assert int(nucleus(LOGITS[None], top_p).isfinite().sum()) == kept


def test_wrong_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="temperature"):
        RowSampler([0], 1, temperature=0)
    with pytest.raises(ValueError, match="2 rows for 1 seeds"):
        RowSampler([0], 1)(torch.empty(2, 0), LOGITS.expand(2, -1))
