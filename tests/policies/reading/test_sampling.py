"""Samples follow the distribution, row by row, whatever else is in the batch."""

import pytest
import torch

from policies.reading.sampling import RowSampler, nucleus

LOGITS = torch.tensor([0.0, 1.0, 2.0, -torch.inf])
PROBABILITIES = LOGITS.softmax(dim=-1)


def draw(seeds: list[int], logits: torch.Tensor = LOGITS, **shape: float) -> torch.Tensor:
    sampler = RowSampler(seeds, **shape)
    return sampler(torch.empty(len(seeds), 0), logits.expand(len(seeds), -1)).argmax(dim=-1)


def test_frequencies_match_the_probabilities() -> None:
    counts = torch.bincount(draw(list(range(20_000))), minlength=4) / 20_000
    # Four standard deviations of a share of 20,000 draws are at most 0.0142.
    assert torch.allclose(counts, PROBABILITIES, atol=0.0142)
    assert counts[3] == 0


def test_temperature_shapes_the_distribution() -> None:
    counts = torch.bincount(draw(list(range(20_000)), temperature=2.0), minlength=4) / 20_000
    assert torch.allclose(counts, (LOGITS / 2).softmax(dim=-1), atol=0.0142)


def test_a_row_does_not_depend_on_its_batch() -> None:
    together = draw(list(range(50)))
    alone = torch.cat([draw([seed]) for seed in range(50)])
    backwards = draw(list(range(49, -1, -1))).flip(0)
    assert torch.equal(together, alone)
    assert torch.equal(together, backwards)


def test_steps_of_a_row_draw_new_noise() -> None:
    sampler = RowSampler([0])
    flat = torch.zeros(1, 1000)
    first, second = (sampler(torch.empty(1, 0), flat).argmax() for _ in range(2))
    assert first != second


@pytest.mark.parametrize(("top_p", "kept"), [(0.5, 1), (0.66, 1), (0.67, 2), (0.95, 3), (1.0, 3)])
def test_the_nucleus_is_the_smallest_set_of_its_mass(top_p: float, kept: int) -> None:
    # Probabilities 0.665, 0.245, 0.090, 0.
    assert int(nucleus(LOGITS[None], top_p).isfinite().sum()) == kept


def test_wrong_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="temperature"):
        RowSampler([0], temperature=0)
    with pytest.raises(ValueError, match="2 rows for 1 seeds"):
        RowSampler([0])(torch.empty(2, 0), LOGITS.expand(2, -1))
