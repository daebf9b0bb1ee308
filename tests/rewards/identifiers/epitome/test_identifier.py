"""The bi-encoder: padding never counts, texts are encoded once, a folder gives the same back."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from rewards.identifiers.assessment import Assessment
from rewards.identifiers.epitome.calibration import (
    calibrate,
    fit_decision_offsets,
    fit_gate_bar,
    fit_rationale_threshold,
    fit_scale,
)
from rewards.identifiers.epitome.identifier import Architecture, EpitomeIdentifier, batches
from rewards.identifiers.epitome.model import SeekerAttention, evidence
from rewards.identifiers.epitome.strength import Rows, best_bar, fit_rule, fit_strength, rows_of
from rewards.identifiers.epitome.training import (
    IdentifierLoss,
    gate_weights,
    make_examples,
    pair_losses,
)
from rewards.identifiers.named import load_identifier
from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS, Exchange, Label
from tests.tiny_lm import write_tiny_encoder

SEEKERS = ["i failed the exam", "my dog died", "i failed the exam", "😊", "你好 " * 90]
RESPONSES = ["i am so sorry . what happened ?", "ok", "that must be hard for you", "", "why " * 300]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_encoder(tmp_path_factory.mktemp("encoder"))


def make(encoder: Path, perturbed: bool = True, **options: object) -> EpitomeIdentifier:
    torch.manual_seed(0)
    settings = {"rank": 2, "max_response_tokens": 48, "max_seeker_tokens": 24} | options
    architecture = Architecture(str(encoder), **settings)  # type: ignore[arg-type]
    networks, tokenizer = architecture.build()
    for parameter in networks.parameters():
        # Attention and LoRA start at 0: perturbed, they count.
        if perturbed and parameter.requires_grad:
            torch.nn.init.normal_(parameter, std=0.3)
    return EpitomeIdentifier(architecture, networks, tokenizer, "tiny")


def numbers(assessments: list[Assessment]) -> torch.Tensor:
    return torch.tensor(
        [[a.judgements[name].probabilities for name in MECHANISMS] for a in assessments]
    )


@pytest.mark.parametrize("arrangement", ["shared", "independent"])
def test_padding_batch_and_order_never_change_an_assessment(
    encoder: Path, arrangement: str
) -> None:
    identifier = make(encoder, arrangement=arrangement)
    together = numbers(identifier.assess(SEEKERS, RESPONSES))
    alone = [identifier.assess([s], [r])[0] for s, r in zip(SEEKERS, RESPONSES, strict=True)]
    backwards = identifier.assess(SEEKERS[::-1], RESPONSES[::-1])[::-1]
    assert torch.allclose(together, numbers(alone), atol=1e-5)
    assert torch.allclose(together, numbers(backwards), atol=1e-5)
    assert together.isfinite().all()
    assert torch.allclose(together.sum(-1), torch.ones(()), atol=1e-5)
    assert together.std(dim=0).max() > 1e-3  # otherwise nothing was tested


def test_the_seeker_post_counts(encoder: Path) -> None:
    identifier = make(encoder)
    one, other = identifier.assess(["i failed the exam", "my dog died"], ["ok", "ok"])
    assert not torch.allclose(numbers([one]), numbers([other]), atol=1e-4)


def test_rationales_are_parts_of_the_response(encoder: Path) -> None:
    identifier = make(encoder)
    for response, assessment in zip(RESPONSES, identifier.assess(SEEKERS, RESPONSES), strict=True):
        for judgement in assessment.judgements.values():
            assert all(text in response for text in judgement.rationales)
            assert not (judgement.rationales and judgement.level == 0)
    silent = identifier.assess(SEEKERS, RESPONSES, rationales=False)
    assert not any(j.rationales for a in silent for j in a.judgements.values())


@pytest.mark.parametrize("options", [{"rank": 2}, {"rank": 0}, {"arrangement": "independent"}])
def test_a_saved_identifier_comes_back(
    encoder: Path, tmp_path: Path, options: dict[str, object]
) -> None:
    identifier = make(encoder, **options)
    for network in identifier.networks:
        network.gate_scale.fill_(1.5)
        network.strength_weight.normal_()
        network.strength_bar.fill_(0.7)
    identifier.save(tmp_path / "model", dtype=torch.float32)
    again = load_identifier(str(tmp_path / "model"))
    before, after = identifier.assess(SEEKERS, RESPONSES), again.assess(SEEKERS, RESPONSES)
    assert torch.allclose(numbers(before), numbers(after), atol=1e-5)
    levels = [[a.judgements[m].level for m in MECHANISMS] for a in before]
    assert levels == [[a.judgements[m].level for m in MECHANISMS] for a in after]


def test_equal_texts_are_encoded_once(encoder: Path) -> None:
    identifier = make(encoder)
    seen: list[int] = []
    network = identifier.networks[0]
    encode = network.encode_response
    network.encode_response = lambda ids, mask: (seen.append(len(ids)), encode(ids, mask))[1]
    identifier.assess(["a b", "a b", "c"], ["ok", "hm", "ok"])
    assert sum(seen) == 4


def test_an_unknown_identifier_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is no identifier"):
        load_identifier(str(tmp_path))
    with pytest.raises(UserError, match="shared or independent"):
        Architecture(arrangement="both").build()


def test_attention_ignores_padding_of_the_seeker() -> None:
    torch.manual_seed(0)
    attention = SeekerAttention(8, 4)
    torch.nn.init.normal_(attention.output.weight)
    response, seeker = torch.randn(1, 3, 8), torch.randn(1, 2, 8)
    padded = torch.cat([seeker, torch.full((1, 5, 8), 99.0)], dim=1)
    mask = torch.tensor([[1, 1, 0, 0, 0, 0, 0]])
    expected = attention(response, seeker, torch.ones(1, 2))
    assert torch.allclose(attention(response, padded, mask), expected, atol=1e-6)


def test_batches_hold_every_row_once_within_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rewards.identifiers.epitome.identifier.TOKENS_AT_ONCE", 20)
    lengths = [9, 3, 30, 4, 4, 10]
    rows = list(batches(lengths))
    assert sorted(row for batch in rows for row in batch) == list(range(6))
    assert all(len(b) == 1 or max(lengths[r] for r in b) * len(b) <= 20 for b in rows)


def labelled(level: int, response: str = "i am so sorry . why ?") -> Exchange:
    rationales = ("so sorry",) if level else ()
    labels = {mechanism: Label(level, rationales) for mechanism in MECHANISMS}
    return Exchange("i failed", response, labels=labels)


def test_the_loss_by_hand() -> None:
    logits = torch.zeros(1, 1)  # either way: cross-entropy ln 2, and some weighs 3
    marks_logits = torch.zeros(1, 1, 4)  # each token ln 2; the last is padding
    loss = pair_losses(
        logits,
        marks_logits,
        torch.tensor([[1, 1, 1, 0]]),
        torch.tensor([[2]]),
        torch.tensor([[[1, 0, 0, 0]]]),
        torch.tensor([[1.0, 3.0]]),
        level_weight=1.0,
        rationale_weight=0.5,
    )
    assert loss.tolist() == pytest.approx([3 * 0.693147 + 0.5 * 0.693147], abs=1e-5)


def test_gate_weights_by_hand(encoder: Path) -> None:
    identifier = make(encoder)
    exchanges = [labelled(0)] * 3 + [labelled(2)]
    examples = make_examples(exchanges, identifier.tokenizer, 24, 48)
    weights = gate_weights(examples, power=1.0)
    # Shares 3/4 and 1/4 → inverse 4/3 and 4; their mean over the examples is 2.
    assert weights[0].tolist() == pytest.approx([2 / 3, 2])
    assert gate_weights(examples, power=0.0)[0].tolist() == [1, 1]


def test_rationales_become_token_marks(encoder: Path) -> None:
    identifier = make(encoder)
    (example,) = make_examples([labelled(1)], identifier.tokenizer, 24, 48)
    tokens = identifier.tokenizer.convert_ids_to_tokens(example.response_ids.tolist())
    marked = [t for t, mark in zip(tokens, example.marks_MT[0].tolist(), strict=True) if mark]
    assert "".join(marked).replace(" ", "") == "sosorry"


def test_training_tells_some_from_none(encoder: Path) -> None:
    identifier = make(encoder, perturbed=False, dropout=0.0)
    exchanges = [labelled(2), labelled(0, "ok then do it")]
    examples = make_examples(exchanges, identifier.tokenizer, 24, 48)
    loss = IdentifierLoss(identifier, gate_weights(examples, 0.5))
    trained = [p for p in identifier.networks.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=0.01)
    identifier.networks.train()
    for _ in range(300):
        optimizer.zero_grad()
        loss(examples)[0].backward()
        optimizer.step()
    identifier.networks.eval()
    pairs = [(e.seeker_post, e.response_post) for e in exchanges]
    high, low = identifier.assess(*map(list, zip(*pairs, strict=True)))
    # Weak or strong is not fitted yet, so whatever passes the gate is weak.
    assert [[a.judgements[m].level for m in MECHANISMS] for a in (high, low)] == [[1] * 3, [0] * 3]
    assert high.judgements["explorations"].rationales == ("so sorry",)


def test_calibration_finds_the_scale_that_was_put_in() -> None:
    torch.manual_seed(0)
    logits = torch.randn(8000) * 2
    some = torch.bernoulli(logits.sigmoid())
    scale, bias = fit_scale(logits * 3 + 1.5, some)
    assert scale == pytest.approx(1 / 3, rel=0.1)
    assert bias == pytest.approx(-0.5, abs=0.15)


def test_calibration_stays_finite_on_rows_that_are_told_apart_perfectly() -> None:
    scale, bias = fit_scale(torch.tensor([-9.0, 9.0]), torch.tensor([0.0, 1.0]))
    assert 0 < scale < float("inf")
    assert abs(bias) < 1


def test_the_gate_bar_moves_to_where_the_levels_part() -> None:
    logits, strong = np.array([-2.0] * 8 + [-0.6] * 8), np.array([0] * 8 + [1] * 8)
    assert -2 < fit_gate_bar(logits, strong, np.array([0] * 8 + [2] * 8)) < -0.6


def test_evidence_by_hand() -> None:
    states = torch.tensor([[[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]]])
    marks = torch.tensor([[[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]])
    found = evidence(states, marks)
    assert found[0, 0].tolist() == pytest.approx([2, 3, 0.693147])  # the mean, and log 2
    assert found[0, 1].tolist() == pytest.approx([0, 0, -2.302585])  # nothing is marked


def test_levels_by_hand(encoder: Path) -> None:
    network = make(encoder).networks[0]
    output = network(*[torch.ones(1, 3, dtype=torch.long)] * 4)
    output = output._replace(gate_logits=torch.tensor([[0.0, 1.0986123, -1.0986123]]))
    network.strength_bias.copy_(torch.tensor([1.0986123, 0.0, 0.0]))
    network.strength_bar.copy_(torch.tensor([0.0, 0.5, 0.0]))
    network.gate_bar.copy_(torch.tensor([-0.1, 0.0, -2.0]))
    # Gates of 1/2, 3/4, 1/4; strong with 3/4, 1/2, 1/2.
    expected = [[0.5, 0.125, 0.375], [0.25, 0.375, 0.375], [0.75, 0.125, 0.125]]
    assert network.level_probabilities(output)[0].flatten().tolist() == pytest.approx(
        [value for row in expected for value in row]
    )
    assert network.decide_levels(output).tolist() == [[2, 1, 1]]


def rows_with(weak: int, strong: int, telling: int = 2, noise: float = 0.3) -> Rows:
    """Evidence in which one number of four tells weak from strong."""
    evidence_NE = np.random.default_rng(weak).normal(0, noise, (weak + strong, 4))
    strong_N = np.arange(weak + strong) >= weak
    evidence_NE[:, telling] += np.where(strong_N, 1, -1)
    return Rows(evidence_NE, evidence_NE, strong_N, np.arange(weak + strong))


def test_the_rule_finds_what_tells_weak_from_strong() -> None:
    rows = rows_with(12, 60)
    weight, bias, bar = fit_rule(rows)
    assert np.abs(weight).argmax() == 2
    assert ((rows.found_NE @ weight + bias > bar) == rows.strong_N).mean() > 0.95


def test_extra_rows_are_used_where_they_help() -> None:
    rows, extra = rows_with(12, 20, noise=2.0), rows_with(60, 61)
    alone, helped = fit_rule(rows)[0], fit_rule(rows, extra)[0]
    hindered = fit_rule(rows_with(40, 60), rows_with(60, 61, telling=1, noise=0.1))[0]
    assert np.abs(helped[2]) / np.abs(helped).sum() > np.abs(alone[2]) / np.abs(alone).sum()
    assert np.abs(hindered).argmax() == 2


def test_too_few_rows_make_no_rule() -> None:
    weight, bias, bar = fit_rule(rows_with(2, 60))
    assert not weight.any()
    assert bias > bar  # strong is what is frequent


def test_the_bar_stands_between_weak_and_strong() -> None:
    logits = np.concatenate([np.linspace(0, 1, 10), np.linspace(2, 3, 40)])
    assert 0.9 < best_bar(logits, np.arange(50) >= 10) < 2.1


def test_strength_is_read_from_the_rationale(encoder: Path) -> None:
    identifier = make(encoder)
    exchanges = [
        replace(labelled(1, f"word{i} so sorry"), seeker_post=f"post {i}") for i in range(12)
    ]
    labels = dict.fromkeys(MECHANISMS, Label(2, ("must be so sorry and hard",)))
    strong = [
        Exchange(f"post {i}", f"word{i} that must be so sorry and hard", labels=labels)
        for i in range(12)
    ]
    fit_strength(identifier, exchanges + strong)
    annotated_NE = rows_of(identifier, exchanges + strong)[MECHANISMS[0]].annotated_NE
    logits = annotated_NE @ identifier.networks[0].strength_weight[0].numpy()
    assert logits[:12].max() < logits[12:].min()


def test_offsets_lift_a_rare_level() -> None:
    log_probabilities = torch.tensor([[0.9, 0.1, 0.0]] * 9 + [[0.6, 0.4, 0.0]] * 3)
    gold = torch.tensor([0] * 9 + [1] * 3)
    offsets, _ = fit_decision_offsets(log_probabilities.numpy(), gold.numpy())
    levels = (log_probabilities.numpy() + offsets).argmax(1)
    assert levels.tolist() == gold.tolist()


def test_the_threshold_that_marks_the_right_words_is_found() -> None:
    values = [[0.9, 0.45, 0.1], [0.2, 0.44, 0.9]]
    gold = [[True, True, False], [False, True, True]]
    threshold, _, score = fit_rationale_threshold(values, gold, [1, 1])
    assert 0.2 < threshold <= 0.45
    assert score == 2.0


def test_calibrate_fits_on_exchanges(encoder: Path) -> None:
    identifier = make(encoder)
    exchanges = [labelled(0, "ok then do it"), labelled(1), labelled(2, "so sorry for you")] * 4
    fitted = calibrate(identifier, exchanges)
    assert not torch.equal(fitted.networks[0].gate_scale, torch.ones(3))
    assert len(fitted.assess(["a"], ["b"])) == 1
