"""Sequence-classification models as rewards: classifiers, reward models, what they read."""

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
import torch

from rewards.classifier_options import ClassifierOptions
from rewards.named import Models, build_rewards
from rewards.protocol import RewardError, name_of
from rewards.terms.classifier import ClassifierReward, values_of
from rewriting.errors import UserError
from rewriting.runtime.models import named as runtime_models
from rewriting.runtime.models.named import load_classifier
from tests.tiny_lm import CHARACTERS, tiny_tokenizer, write_tiny_llama

EMOTIONS = ("anger", "caring", "joy")
ROWS: dict[str, Any] = {
    "completions": [
        "I am so sorry to hear that.",
        "No.",
        "",
        "Call her, then tell me more?",
        "No.",
    ],
    "seeker_post": ["I failed.", "My dog died.", "Rain.", "We fought.", "We fought."],
    "sentence": ["I am so sorry.", None, " ", "Tell me more?", "No."],
}
SIZES: dict[str, Any] = {
    "vocab_size": len(CHARACTERS) + 2,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "max_position_embeddings": 64,
    "initializer_range": 0.5,  # far from uniform, so that a wrong text or label shows
}


def write_bert(folder: Path, labels: tuple[str, ...], **options: Any) -> Path:
    """A BERT of two layers that classifies, with one output per label."""
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    config = BertConfig(
        **SIZES, num_labels=len(labels), id2label=dict(enumerate(labels)), **options
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


def write_llama(folder: Path) -> Path:
    """A reward model as they are published today: a causal model with one output, for chats."""
    from transformers import LlamaConfig, LlamaForSequenceClassification

    torch.manual_seed(0)
    config = LlamaConfig(**SIZES, num_key_value_heads=1, num_labels=1, pad_token_id=None)
    LlamaForSequenceClassification(config).save_pretrained(folder)
    tokenizer = tiny_tokenizer()
    tokenizer.pad_token = None
    tokenizer.chat_template = (
        "{% for m in messages %}{{ m['role'][0] }}:{{ m['content'] }}|{% endfor %}"
    )
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def emotions(tmp_path: Path) -> Path:
    return write_bert(tmp_path / "tiny-emotions", EMOTIONS)


@pytest.fixture
def reward_model(tmp_path: Path) -> Path:
    return write_bert(tmp_path / "tiny-reward", ("LABEL_0",))


def term(folder: Path, **options: Any) -> ClassifierReward:
    return ClassifierReward(*load_classifier(str(folder)), ClassifierOptions(**options))


@torch.no_grad()
def logits(folder: Path, *texts: str) -> torch.Tensor:
    """The logits [L] of one text, or of one pair, from the model itself."""
    model, tokenizer = load_classifier(str(folder))
    read = tokenizer(*texts, return_tensors="pt")
    found: torch.Tensor = model(**read).logits[0]
    return found


def test_values_by_hand() -> None:
    logits_BL = torch.tensor([[math.log(1.0), math.log(3.0)]])
    assert values_of(logits_BL, 1, 1.0, "softmax").tolist() == pytest.approx([0.75])
    assert values_of(logits_BL, 1, 1.0, "sigmoid").tolist() == pytest.approx([0.75])
    assert values_of(logits_BL, 1, 2.0, "none").tolist() == pytest.approx([math.log(3) / 2])
    # Divided by 1/2, the odds are squared: 9 to 1.
    assert values_of(logits_BL, 1, 0.5, "softmax").tolist() == pytest.approx([0.9])


def test_the_probability_of_a_label(emotions: Path) -> None:
    found = term(emotions, label="caring")(**ROWS)
    for value, text in zip(found, ROWS["completions"], strict=True):
        expected = logits(emotions, text or "</s>").softmax(-1)[1]
        assert value == pytest.approx(float(expected), abs=1e-6)
    assert len({round(value or 0, 6) for value in found}) == 4  # two rows are equal
    assert term(emotions, label=1)(**ROWS) == found


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"label": "joy", "output": "logit"}, lambda x: x[2]),
        ({"label": "joy", "output": "logit", "temperature": 4.0}, lambda x: x[2] / 4),
        ({"label": "joy", "temperature": 4.0}, lambda x: (x / 4).softmax(-1)[2]),
    ],
)
def test_output_and_temperature(emotions: Path, options: dict[str, Any], expected: Any) -> None:
    found = term(emotions, **options)(completions=["No."])
    assert found == pytest.approx([float(expected(logits(emotions, "No.")))], abs=1e-6)


def test_labels_that_do_not_exclude_each_other_have_a_sigmoid_each(tmp_path: Path) -> None:
    folder = write_bert(tmp_path, EMOTIONS, problem_type="multi_label_classification")
    found = [term(folder, label=label)(completions=["No."])[0] for label in EMOTIONS]
    assert found == pytest.approx(logits(folder, "No.").sigmoid().tolist(), abs=1e-6)


def test_a_regression_of_several_outputs_gives_them_as_they_are(tmp_path: Path) -> None:
    folder = write_bert(tmp_path, EMOTIONS, problem_type="regression")
    found = term(folder, label="joy")(completions=["No."])
    assert found == pytest.approx([float(logits(folder, "No.")[2])], abs=1e-6)
    with pytest.raises(UserError, match="a regression, which gives no probabilities"):
        term(folder, label="joy", output="probability")


def test_a_reward_model_gives_its_one_output(reward_model: Path) -> None:
    raw = float(logits(reward_model, "No.")[0])
    assert not 0 <= raw <= 1
    assert term(reward_model)(completions=["No."]) == pytest.approx([raw], abs=1e-6)
    halved = term(reward_model, temperature=2)(completions=["No."])
    assert halved == pytest.approx([raw / 2], abs=1e-6)
    probability = term(reward_model, output="probability")(completions=["No."])
    assert probability == pytest.approx([1 / (1 + math.exp(-raw))], abs=1e-6)


def test_a_causal_reward_model_without_a_pad_token(tmp_path: Path) -> None:
    folder = write_llama(tmp_path)
    reward = term(folder)
    found = reward(**ROWS)
    alone = [reward(completions=[text])[0] for text in ROWS["completions"]]
    assert found == pytest.approx(alone, abs=1e-5)
    assert len({round(value or 0, 4) for value in found}) == 4


def test_what_the_model_reads(emotions: Path) -> None:
    read: list[tuple[str, ...]] = []

    class Spy(ClassifierReward):
        def _scores(self, keys: Any) -> Any:
            read.extend(keys)
            return super()._scores(keys)

    def values(text: str) -> list[float | None]:
        read.clear()
        options = ClassifierOptions(label="joy", text=text)
        return Spy(*load_classifier(str(emotions)), options)(**ROWS)

    values("completion")
    assert read == sorted({(text,) for text in ROWS["completions"]})  # equal ones once
    pair = values("pair")
    assert len(read) == 5
    assert ("We fought.", "No.") in read
    expected = logits(emotions, "We fought.", "No.").softmax(-1)[2]
    assert pair[4] == pytest.approx(float(expected), abs=1e-6)
    sentence = values("sentence")
    assert read == [("I am so sorry.",), ("No.",), ("Tell me more?",)]
    assert [value is None for value in sentence] == [False, True, True, False, False]


def test_a_chat_in_the_models_own_template(tmp_path: Path, emotions: Path) -> None:
    folder = write_llama(tmp_path / "llama")
    found = term(folder, text="chat")(**ROWS)[1]
    assert found == pytest.approx(float(logits(folder, "u:My dog died.|a:No.|")[0]), abs=1e-5)
    with pytest.raises(UserError, match=r"no chat template: `text: pair`"):
        term(emotions, label="joy", text="chat")


@pytest.mark.parametrize(
    ("text", "column"), [("pair", "seeker_post"), ("sentence", "sentence"), ("chat", "seeker_post")]
)
def test_a_missing_column_is_named(tmp_path: Path, text: str, column: str) -> None:
    rewards = build_rewards({f"hf:{write_llama(tmp_path / 'llama')}": {"text": text}})
    with pytest.raises(RewardError, match=f"'llama': `text: {text}` needs the column {column}"):
        rewards(completions=["No."])


def test_messages_of_a_chat_are_read_as_their_text(reward_model: Path) -> None:
    reward = term(reward_model)
    chat = [[{"role": "assistant", "content": "No."}]]
    assert reward(completions=chat) == reward(completions=["No."])


@pytest.mark.parametrize("batch_size", [1, 3, 16])
def test_the_order_of_the_rows_makes_no_difference(emotions: Path, batch_size: int) -> None:
    reward = term(emotions, label="joy", batch_size=batch_size)
    generator = random.Random(0)
    texts = ["".join(generator.choices("abc xyz", k=k % 9)) for k in range(40)]
    found = dict(zip(texts, reward(completions=texts), strict=True))
    shuffled = generator.sample(texts, len(texts))
    assert dict(zip(shuffled, reward(completions=shuffled), strict=True)) == found  # to the bit
    alone = term(emotions, label="joy", batch_size=1)
    assert [alone(completions=[t])[0] for t in texts] == pytest.approx(
        [found[t] for t in texts], abs=1e-5
    )


def test_texts_of_similar_lengths_are_read_together(reward_model: Path) -> None:
    model, tokenizer = load_classifier(str(reward_model))
    reward = ClassifierReward(model, tokenizer, ClassifierOptions(batch_size=2))
    shapes: list[tuple[int, ...]] = []
    model.register_forward_pre_hook(
        lambda module, args, kwargs: shapes.append(tuple(kwargs["input_ids"].shape)),
        with_kwargs=True,
    )
    reward(completions=["a" * 40, "b", "c" * 39, "dd", "b"])
    assert shapes == [(2, 2), (2, 40)]


def test_long_texts_are_cut_at_what_the_model_can_read(reward_model: Path) -> None:
    reward = term(reward_model)
    assert reward.max_tokens == 64
    long, cut = reward(completions=["ab" * 500, "ab" * 32])
    assert long == cut
    short = term(reward_model, max_tokens=3)
    assert short(completions=["abcdef"]) == short(completions=["abcxyz"])
    with pytest.raises(UserError, match="max_tokens is 65; the model reads 64 tokens"):
        term(reward_model, max_tokens=65)


def test_roberta_has_fewer_positions_than_it_says(tmp_path: Path) -> None:
    from transformers import RobertaConfig, RobertaForSequenceClassification

    config = RobertaConfig(**SIZES, num_labels=1, pad_token_id=0, type_vocab_size=1)
    RobertaForSequenceClassification(config).save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    reward = term(tmp_path)
    assert reward.max_tokens == 63
    assert reward(completions=["ab" * 100])[0] is not None


def test_as_a_term_by_its_name(emotions: Path, reward_model: Path) -> None:
    holder = Models()
    rewards = build_rewards(
        {
            f"hf:{emotions}": {"weight": 2, "label": "caring", "temperature": 1.5, "name": "care"},
            f"hf:{reward_model}/": {"weight": 0.5, "retries": 1},
        },
        holder,
    )
    assert list(rewards.terms) == ["care", "tiny-reward"]
    scores = rewards.score(**ROWS)
    assert scores.terms["care"] == term(emotions, label="caring", temperature=1.5)(**ROWS)
    assert scores.terms["tiny-reward"] == term(reward_model)(**ROWS)
    again = (
        build_rewards({f"hf:{emotions}": {"label": "joy"}}, holder).terms["tiny-emotions"].reward
    )
    assert name_of(again) == "tiny-emotions"
    assert getattr(again, "model") is getattr(rewards.terms["care"].reward, "model")  # noqa: B009


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "'tiny-emotions': the model has 3 labels; say with `label` which: 0 anger, 1 caring"),
        ({"label": "carring"}, r"no label 'carring'\. Did you mean caring\? There is: anger, car"),
        ({"label": 3}, r"no label 3\. There is: anger, caring, joy"),
        ({"label": -1}, "no label -1"),
        ({"label": True}, "label is True; put quotes around"),
        ({"label": "joy", "temperature": 0}, "temperature is 0; it must be a number above 0"),
        ({"label": "joy", "text": "pairs"}, r"text is 'pairs'\. Did you mean pair\?"),
        ({"label": "joy", "output": "prob"}, r"output is 'prob'\. .*There is: probability, logit"),
        ({"label": "joy", "batch_size": 0}, "batch_size is 0; it must be a whole number"),
        ({"label": "joy", "max_tokens": 1.5}, "max_tokens is 1.5; it must be a whole number"),
        ({"lable": "joy"}, r"has no option 'lable'\. Did you mean label\?"),
    ],
)
def test_mistakes_are_explained_before_any_weights_are_loaded(
    emotions: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], message: str
) -> None:
    def load(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(runtime_models, "load_classifier", load)
    with pytest.raises(UserError, match=message) as caught:
        build_rewards({f"hf:{emotions}": options})
    assert str(caught.value).startswith("reward 'tiny-emotions': ")


def test_models_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"reward 'nowhere': model folder '.*' does not exist"):
        build_rewards({f"hf:{tmp_path / 'nowhere'}": 1})
    with pytest.raises(
        UserError, match="sequence-classification model, and this one is a LlamaForC"
    ):
        build_rewards({f"hf:{write_tiny_llama(tmp_path / 'causal')}": 1})


def test_code_that_comes_with_a_model_is_not_run(
    emotions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    (emotions / "own.py").write_text("raise SystemExit('the code was run')\n")
    config = json.loads((emotions / "config.json").read_text())
    own = {"AutoModelForSequenceClassification": "own.M"}
    (emotions / "config.json").write_text(json.dumps(config | {"auto_map": own}))
    with pytest.raises(UserError, match="no code of a folder is run"):
        build_rewards({f"hf:{emotions}": {"label": "joy"}})
    (emotions / "own.py").unlink()
    own["AutoConfig"] = "own.C"
    (emotions / "config.json").write_text(
        json.dumps(config | {"auto_map": own, "model_type": "unheard-of"})
    )
    with pytest.raises(UserError, match="names code to run"):
        build_rewards({f"hf:{emotions}": {"label": "joy"}})
