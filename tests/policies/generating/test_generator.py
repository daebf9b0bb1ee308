"""What is sampled, what is scored, what is saved: exact, on tiny models of both kinds."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.utils.rnn import pad_sequence

from policies.generating.decoding import Sampled
from policies.generating.generator import Generator
from policies.named import load_bare_policy
from rewriting.errors import UserError
from tests.policies.generating.tiny_generators import EXCHANGES, tiny_generator, tiny_model
from tests.tiny_t5 import write_tiny_t5

KINDS = ("t5", "llama")
ADAPTERS = ("prefix", "lora", "none")


def all_kinds(test: Any) -> Any:
    test = pytest.mark.parametrize("kind", KINDS)(test)
    return pytest.mark.parametrize("adapter", ADAPTERS)(test)


# ---- log-probabilities


@all_kinds
@pytest.mark.parametrize("shape", [{}, {"temperature": 1.7, "top_p": 0.8}], ids=["plain", "shaped"])
def test_sampled_and_teacher_forced_agree(kind: str, adapter: str, shape: dict[str, float]) -> None:
    """Every token, the first included, with padding of contexts and of responses."""
    generator = tiny_generator(kind, adapter=adapter, **shape)
    encoded = generator.encode(EXCHANGES)
    assert len({len(context) for context in encoded.contexts}) > 2
    sampled = generator.sample(encoded, range(4))
    # The first tokens of a response are as likely as they were with the others behind them.
    rows = zip(sampled.rows(), (1, 2, 4, 6), strict=True)
    sampled = Sampled.of([(*(part[:n] for part in row[:4]), False) for row, n in rows])
    assert len({len(tokens) for tokens in sampled.tokens}) > 2
    found = generator.log_probs(encoded, sampled.tokens, values=True)
    expected_BT = pad_sequence(sampled.log_probs, True)
    torch.testing.assert_close(found.log_prob_BT, expected_BT, rtol=0, atol=1e-4)
    torch.testing.assert_close(
        found.value_BT, pad_sequence(sampled.values, True), atol=1e-4, rtol=0
    )
    assert found.mask_BT.sum(dim=-1).tolist() == [len(tokens) for tokens in sampled.tokens]
    assert (expected_BT[found.mask_BT] < 0).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("adapter", ["lora", "none"])
def test_log_probs_are_those_of_the_plain_model(kind: str, adapter: str) -> None:
    """Row by row through transformers' own forward, without cache, padding or selection."""
    generator = tiny_generator(kind, adapter=adapter)
    encoded = generator.encode(EXCHANGES)
    end = generator.model.end[0]
    tokens = [[*row[:-1], end] for row in generator.sample(encoded, range(4)).tokens]
    found = generator.log_probs(encoded, tokens).log_prob_BT
    for row, (context, response) in enumerate(zip(encoded.contexts, tokens, strict=True)):
        expected = plain_log_probs(generator.model.model, kind, context, response)
        torch.testing.assert_close(found[row, : len(response)], expected, atol=1e-5, rtol=0)


def plain_log_probs(model: Any, kind: str, context: list[int], response: list[int]) -> torch.Tensor:
    with torch.no_grad():
        if kind == "t5":
            decoder = torch.tensor([[0, *response[:-1]]])
            logits = model(input_ids=torch.tensor([context]), decoder_input_ids=decoder).logits[0]
        else:
            logits = model(input_ids=torch.tensor([[*context, *response[:-1]]])).logits[0]
            logits = logits[len(context) - 1 :]
        log_probs = logits.log_softmax(-1)
        return log_probs[torch.arange(len(response)), torch.tensor(response)]


@pytest.mark.filterwarnings("ignore::UserWarning")  # PEFT warns of its own position ids
@pytest.mark.parametrize("kind", KINDS)
def test_peft_reads_a_prefix_to_the_same_numbers(kind: str, tmp_path: Path) -> None:
    from peft import PeftModel

    generator = tiny_generator(kind, adapter="prefix", noise=1.0)
    generator.save(tmp_path)
    encoded = generator.encode(EXCHANGES)
    tokens = generator.sample(encoded, range(4)).tokens
    found = generator.log_probs(encoded, tokens).log_prob_BT
    model = PeftModel.from_pretrained(tiny_model(kind).model, tmp_path)
    for row, (context, response) in enumerate(zip(encoded.contexts, tokens, strict=True)):
        expected = plain_log_probs(model, kind, context, response)
        torch.testing.assert_close(found[row, : len(response)], expected, atol=1e-5, rtol=0)


@all_kinds
def test_the_reference_is_the_policy_as_it_was(kind: str, adapter: str) -> None:
    generator = tiny_generator(kind, adapter=adapter)
    generator.freeze_reference()
    encoded = generator.encode(EXCHANGES)
    tokens = generator.sample(encoded, range(4)).tokens
    before = generator.log_probs(encoded, tokens).log_prob_BT.detach()
    reference = generator.log_probs(encoded, tokens, role="reference").log_prob_BT
    assert torch.equal(before, reference)  # KL to itself: exactly 0
    assert not reference.requires_grad
    with torch.no_grad():
        for parameter in generator.adapters.parameters("policy"):
            parameter += 0.5
    after = generator.log_probs(encoded, tokens).log_prob_BT
    again = generator.log_probs(encoded, tokens, role="reference").log_prob_BT
    assert torch.equal(again, reference)
    if adapter != "none":
        assert (after - before).abs().max() > 1e-3
        frozen = generator.adapters.parameters("reference")
        assert frozen
        assert not any(parameter.requires_grad for parameter in frozen)


@all_kinds
def test_gradients_reach_what_is_trained_and_nothing_else(kind: str, adapter: str) -> None:
    generator = tiny_generator(kind, adapter=adapter)
    generator.freeze_reference()
    encoded = generator.encode(EXCHANGES)
    tokens = generator.sample(encoded, range(4)).tokens
    found = generator.log_probs(encoded, tokens, values=True)
    assert found.value_BT is not None
    (found.log_prob_BT.sum() + found.value_BT.sum()).backward()
    trained = [*generator.adapters.parameters("policy"), *generator.value_head.parameters()]
    for parameter in trained:
        assert parameter.grad is not None
        assert parameter.grad.abs().max() > 0
    known = {id(parameter) for parameter in trained}
    everything = [*generator.module.parameters(), *generator.model.model.parameters()]
    assert all(p.grad is None for p in everything if id(p) not in known)


# ---- sampling


@all_kinds
def test_a_row_does_not_depend_on_its_batch(kind: str, adapter: str) -> None:
    generator = tiny_generator(kind, adapter=adapter)
    together = generator.sample(generator.encode(EXCHANGES), [5, 6, 7, 8])
    for row, exchange in enumerate(EXCHANGES):
        alone = generator.sample(generator.encode([exchange]), [5 + row])
        assert alone.tokens[0] == together.tokens[row]
        torch.testing.assert_close(alone.log_probs[0], together.log_probs[row], atol=1e-4, rtol=0)
        assert alone.finished[0] == together.finished[row]


def test_a_response_ends_with_the_end_or_at_the_limit() -> None:
    generator = tiny_generator("t5", max_new_tokens=6)
    sampled = generator.sample(generator.encode(EXCHANGES * 8), range(32))
    assert {True, False} == set(sampled.finished), "choose seeds that show both"
    end = generator.model.end[0]
    for tokens, finished in zip(sampled.tokens, sampled.finished, strict=True):
        assert end not in tokens[:-1]
        assert (tokens[-1] == end) == finished
        assert finished or len(tokens) == 6


# ---- what it reads


def test_targets_and_texts_are_each_others_inverse() -> None:
    for kind in KINDS:
        generator = tiny_generator(kind, max_new_tokens=12)
        tokens = generator.target("Oh no!  Why?")
        assert tokens[-1] == generator.model.end[0] or len(tokens) == 12
        assert generator.text(tokens).startswith("Oh no! Wh")
        assert len(generator.target("a long response that has no room")) == 12


# ---- learning, saving, using


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("adapter", ["prefix", "lora"])
def test_the_supervised_loss_falls(kind: str, adapter: str) -> None:
    generator = tiny_generator(kind, adapter=adapter, noise=0.0)
    optimizer = torch.optim.AdamW(generator.module.parameters(), lr=0.03)
    losses = []
    for _ in range(30):
        total, weight = generator.supervised_loss(EXCHANGES)
        assert weight == sum(len(generator.target(e.response_post)) for e in EXCHANGES)
        losses.append(total.item() / weight)
        (total / weight).backward()
        optimizer.step()
        optimizer.zero_grad()
    assert losses[-1] < losses[0] - 0.5


def test_the_supervised_loss_is_at_temperature_1() -> None:
    plain, _ = tiny_generator("t5").supervised_loss(EXCHANGES)
    shaped, _ = tiny_generator("t5", temperature=2.0, top_p=0.5).supervised_loss(EXCHANGES)
    assert plain.item() == shaped.item()


def test_there_is_no_dropout_in_supervision() -> None:
    """With LoRA the trained module is the whole model, which the training loop turns to `train`."""
    generator = tiny_generator("t5", adapter="lora")
    quiet, _ = generator.supervised_loss(EXCHANGES)
    generator.module.train()
    assert generator.supervised_loss(EXCHANGES)[0].item() == quiet.item()


@all_kinds
def test_all_of_it_survives_save_and_load(kind: str, adapter: str, tmp_path: Path) -> None:
    generator = tiny_generator(kind, adapter=adapter)
    generator.freeze_reference()
    with torch.no_grad():
        for parameter in generator.adapters.parameters("policy"):
            parameter += 0.1 * torch.randn_like(parameter)
    generator.save(tmp_path)
    loaded = Generator.load(tmp_path, model=tiny_model(kind), name="loaded")
    assert loaded.settings == generator.settings
    assert json.loads((tmp_path / "policy.json").read_text())["kind"] == "generator"
    encoded = generator.encode(EXCHANGES)
    sampled = generator.sample(encoded, range(4))
    again = loaded.sample(loaded.encode(EXCHANGES), range(4))
    assert again.tokens == sampled.tokens
    assert all(map(torch.equal, again.values, sampled.values))  # the value head too
    assert sampled.values[0].abs().max() > 0
    for role in ("policy", "reference"):
        a, b = (g.log_probs(encoded, sampled.tokens, role=role) for g in (generator, loaded))
        assert torch.equal(a.log_prob_BT, b.log_prob_BT)
    assert not any(parameter.requires_grad for parameter in loaded.module.parameters())
    trainable = Generator.load(tmp_path, model=tiny_model(kind), trainable=True)
    found = [p.requires_grad for p in trainable.adapters.parameters("policy")]
    assert all(found)
    assert not any(p.requires_grad for p in trainable.adapters.parameters("reference"))


def test_a_saved_generator_is_a_policy_by_its_folder(tmp_path: Path) -> None:
    model = str(write_tiny_t5(tmp_path / "model"))
    settings = {"num_virtual_tokens": 3, "max_context_tokens": 80, "max_new_tokens": 8}
    generator = Generator.create(model, **settings)
    generator.save(tmp_path / "mine", dtype=torch.float16)
    policy = load_bare_policy(str(tmp_path / "mine"))
    assert policy.name == "mine"
    rewrites = policy.rewrite(EXCHANGES, seed=3)
    assert [rewrite.exchange for rewrite in rewrites] == EXCHANGES
    assert all(rewrite.edits == () for rewrite in rewrites)
    assert rewrites == policy.rewrite(EXCHANGES, seed=3)
    assert rewrites[::-1] == policy.rewrite(EXCHANGES[::-1], seed=3)
    assert rewrites != policy.rewrite(EXCHANGES, seed=4)


def test_where_nothing_is_written_the_given_response_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = tiny_generator("t5")
    monkeypatch.setattr(generator, "respond", lambda exchanges, seed: ["", "I see."])
    rewrites = generator.rewrite(EXCHANGES[:2], seed=0)
    assert [one.rewritten_response for one in rewrites] == ["Oh no!", "I see."]


def test_a_generator_of_another_model_does_not_fit(tmp_path: Path) -> None:
    for adapter in ("prefix", "lora"):
        tiny_generator("t5", adapter=adapter).save(tmp_path / adapter)
        with pytest.raises(UserError, match="does not fit this model"):
            Generator.load(tmp_path / adapter, model=tiny_model("llama"))
    (tmp_path / "prefix/value_head.safetensors").write_bytes(b"no")
    with pytest.raises(UserError, match="is missing or damaged"):
        Generator.load(tmp_path / "prefix", model=tiny_model("t5"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"kind": "edit_policy"}', "another kind"),
        ('{"kind": "generator", "model": "x", "speed": 1}', "unknown settings speed"),
        ("[]", "does not describe a generator"),
    ],
)
def test_a_folder_that_is_no_generator(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"there is no policy\.json"):
        Generator.load(tmp_path)
    (tmp_path / "policy.json").write_text(text)
    with pytest.raises(UserError, match=message):
        Generator.load(tmp_path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"adapter": "magic"}, "there is no adapter 'magic'"),
        ({"top_p": 0.0}, "top_p must be above 0"),
        ({"max_new_tokens": 0}, "must be from 1"),
    ],
)
def test_settings_that_cannot_work(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        tiny_generator("t5", **settings)


def test_a_role_that_is_not_there_is_an_error() -> None:
    generator = tiny_generator("t5")
    with pytest.raises(ValueError, match="no role 'reference'"):
        generator.log_probs(generator.encode(EXCHANGES), [[5]] * 4, role="reference")
