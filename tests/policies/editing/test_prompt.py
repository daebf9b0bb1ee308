"""States as tokens: what stands where, what is cut, and which tokens end a sentence."""

import pytest

from policies.editing.prompt import ending_tokens, ends_sentence, fit, instruction, state_prompt
from rewriting import Exchange, UserError
from rewriting.loop import EditState
from tests.tiny_lm import tiny_tokenizer


def characters(text: str) -> list[int]:
    return [ord(character) for character in text]


def test_a_prompt_and_its_boundaries() -> None:
    state = EditState(Exchange("I\nfailed.", ""), ("Study.", "Sleep well."))
    prompt = state_prompt(state, characters, start_token=0, max_tokens=500)
    assert prompt.tokens[0] == 0
    text = " " + "".join(map(chr, prompt.tokens[1:]))
    assert text[1:] == (
        "Someone wrote:\nI failed.\n\nA peer answers:\n1. Study.\n2. Sleep well.\n\nEdit:"
    )
    assert [text[: place + 1][-4:] for place in prompt.ends] == ["udy.", "ell."]
    assert [text[: place + 1][-3:] for place in prompt.boundaries] == ["\n1.", "\n2.", ".\n\n"]


def test_an_empty_span_has_one_boundary() -> None:
    prompt = state_prompt(
        EditState(Exchange("Help.", ""), ()), characters, start_token=0, max_tokens=500
    )
    assert (len(prompt.boundaries), prompt.ends) == (1, ())


def test_the_seeker_post_loses_its_beginning_first() -> None:
    seeker, sentences = fit([1, 2, 3, 4, 5, 6], [[7] * 6, [8] * 4], 13)
    assert (seeker, sentences) == ([4, 5, 6], [[7] * 6, [8] * 4])


def test_then_the_longest_sentences_lose_their_middle() -> None:
    # A quarter of 16 is left to the seeker post; of the other 12, the short sentence keeps all 4.
    seeker, sentences = fit(list(range(9)), [list(range(10, 21)), [8] * 4], 16)
    assert seeker == [5, 6, 7, 8]
    assert sentences == [[10, 11, 12, 13, 17, 18, 19, 20], [8] * 4]


def test_a_seeker_post_of_nothing_and_sentences_of_nothing() -> None:
    assert fit([], [], 4) == ([], [])
    assert fit([1, 2, 3], [[9] * 8], 8) == ([2, 3], [[9] * 6])


def test_too_many_sentences_are_refused() -> None:
    with pytest.raises(UserError, match=r"span of 5 sentences.*max_prompt_tokens"):
        fit([1] * 10, [[2] * 9] * 5, 20)


def test_a_prompt_never_exceeds_its_limit() -> None:
    state = EditState(Exchange("word " * 60, ""), ("a long sentence " * 9, "short one"))
    for limit in (80, 120, 300):
        prompt = state_prompt(state, characters, start_token=0, max_tokens=limit)
        assert len(prompt.tokens) == limit
        assert prompt.boundaries[0] < prompt.ends[0] < prompt.boundaries[1] < prompt.ends[1]


@pytest.mark.parametrize(
    ("position", "text"),
    [
        (0, " Insert before sentence 1:"),
        (1, " Insert before sentence 2:"),
        (2, " Insert at the end:"),
        (3, " Replace sentence 1:"),
        (4, " Replace sentence 2:"),
    ],
)
def test_the_words_for_a_position(position: int, text: str) -> None:
    assert instruction(position, 2) == text


def test_keep_has_no_words() -> None:
    with pytest.raises(ValueError, match="keep"):
        instruction(5, 2)


@pytest.mark.parametrize(
    "text", [".", "?!", "...", '."', ".)", ". ", "\n", "ok.\n", "…", "!”", "\r\n"]
)
def test_what_ends_a_sentence(text: str) -> None:
    assert ends_sentence(text)


@pytest.mark.parametrize("text", ["", " ", '"', ",", ".com", " the", ":", "3.5", ")", "e.g.,"])
def test_what_does_not(text: str) -> None:
    assert not ends_sentence(text)


def test_ending_tokens_of_a_vocabulary() -> None:
    tokenizer = tiny_tokenizer()
    endings = ending_tokens(tokenizer, len(tokenizer) + 3)
    chosen = [number for number, end in enumerate(endings.tolist()) if end]
    texts = tokenizer.convert_ids_to_tokens([n for n in chosen if n < len(tokenizer)])
    assert sorted(texts) == sorted(["</s>", "<unk>", "\n", ".", "!", "?"])
    assert chosen[-3:] == [len(tokenizer), len(tokenizer) + 1, len(tokenizer) + 2]
