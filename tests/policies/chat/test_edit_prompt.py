"""How a chat model is asked for edits."""

from policies.chat.edit_prompt import EditPrompt
from rewriting import Exchange
from tests.tiny_lm import tiny_tokenizer


def prompt(max_tokens: int) -> EditPrompt:
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = "{% for m in messages %}<{{ m['content'] }}>{% endfor %}"
    return EditPrompt(tokenizer, max_tokens)


def test_the_sentences_are_numbered_from_one() -> None:
    text = prompt(2000).text(Exchange("i failed.", "start early. use\ntests. good luck."))
    assert "\n1. start early.\n2. use\n3. tests.\n4. good luck.\n" in text
    assert "i failed." in text
    assert "5: after the last)" in text


def test_an_empty_reply_is_said_to_be_empty() -> None:
    text = prompt(2000).text(Exchange("i failed.", " "))
    assert "(nothing yet)" in text
    assert "1: after the last)" in text


def test_what_is_too_long_is_cut() -> None:
    asked = prompt(1000)
    frame = len(asked.tokens(asked.text(Exchange("", ""))))
    text = asked.text(Exchange("word " * 900 + "the end", "well so it goes. " * 200))
    assert "the end" in text
    assert "\n1. well so it goes.\n2. well so it goes." in text
    assert len(asked.tokens(text)) <= max(1000, frame + 500) + 50
    long = asked.text(Exchange("help", "so " * 900))
    assert "1. so so" in long
    assert len(asked.tokens(long)) <= frame + 500 + 10
