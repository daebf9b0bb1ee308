"""A context has its speakers, fits its room, and holds no end but its own."""

import pytest

from policies.generating.prompt import INSTRUCTION, context_tokens, plain_tokens
from rewriting.errors import UserError
from rewriting.exchange import Exchange
from tests.policies.generating.tiny_generators import EXCHANGES, tiny_generator


def test_a_context_has_its_speakers_and_loses_its_oldest_end() -> None:
    generator = tiny_generator("llama", max_context_tokens=200)
    exchange = Exchange("c", "r", history=("a", "b"))
    text = generator.model.tokenizer.decode(generator.context(exchange)[1:])
    assert text == f"{INSTRUCTION}\nSeeker: a\nPeer: b\nSeeker: c\nPeer:"
    around = len(INSTRUCTION) + len("\nPeer:") + 1  # and a start token
    short = tiny_generator("llama", max_context_tokens=around + len("b\nSeeker: c"))
    text = short.model.tokenizer.decode(short.context(exchange)[1:])
    assert text == f"{INSTRUCTION}b\nSeeker: c\nPeer:"


def test_an_end_in_what_somebody_wrote_is_not_the_end() -> None:
    """As in T5's vocabulary, where the special tokens are words as well."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    words = ["<pad>", "</s>", "<unk>", *"a </s>pd"]
    vocabulary = Tokenizer(models.Unigram([(word, -1.0) for word in words], unk_id=2))
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=vocabulary, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )
    known = {word: number for number, word in enumerate(words)}
    assert plain_tokens(tokenizer, "a</s>a<pad>") == [known[c] for c in "a< /s>a< pad>"]
    assert plain_tokens(tokenizer, "as") == [known["a"], known["s"]]


def test_a_context_without_room_is_the_users_mistake() -> None:
    with pytest.raises(UserError, match="leaves no room"):
        context_tokens(EXCHANGES[0], lambda text: [1] * len(text), max_tokens=20)
    with pytest.raises(UserError, match="reads 256 tokens"):
        tiny_generator("llama", max_context_tokens=250)
