"""A chat model as an edit policy."""

from pathlib import Path
from typing import Any

import pytest

from policies.chat.editor import ChatEditor
from policies.chat.rewriter import EDITOR, RewriterSettings, read_rewriter, write_rewriter
from policies.chat.template import end_tokens_of
from rewriting import Edit, Exchange, UserError
from tests.tiny_lm import tiny_llama, tiny_tokenizer, write_tiny_llama


@pytest.fixture
def editor(tmp_path: Path) -> ChatEditor:
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    folder = write_tiny_llama(tmp_path / "model")
    tokenizer.save_pretrained(folder)
    return ChatEditor(str(folder), max_prompt_tokens=100, max_new_tokens=4)


def test_answers_become_edits_and_what_cannot_be_read_keeps_the_reply(
    editor: ChatEditor, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchanges = [Exchange("I failed.", "Start early."), Exchange("It rains.", "Stay in.")]

    def answers(prompt: Any, asked: Any, ends: Any, *, seed: int) -> list[str]:
        assert (prompt, list(asked), ends, seed) == (editor.prompt, exchanges, [0], 3)
        return ["INSERT 2: How are you?", "I would stay in too."]

    monkeypatch.setattr(editor.chat, "answers", answers)
    first, second = editor.rewrite(exchanges, seed=3)
    assert first.rewritten_response == "Start early. How are you?"
    assert first.edits == (Edit.insert(1, "How are you?"),)
    assert not second.changed


def test_an_answer_depends_on_its_row_alone(editor: ChatEditor) -> None:
    exchanges = [Exchange(f"I lost my {thing}.", "Look.") for thing in ("cat", "keys", "job")]
    answers = editor.answers(exchanges, seed=1)
    assert editor.answers(exchanges[1:2], seed=1) == answers[1:2]
    assert editor.answers(exchanges, seed=2) != answers


def test_every_end_that_the_model_declares_ends_an_answer() -> None:
    model, tokenizer = tiny_llama(), tiny_tokenizer()
    model.generation_config.eos_token_id = [7, 0, 9]
    assert end_tokens_of(model, tokenizer) == [0, 7, 9]
    model.generation_config.eos_token_id = None
    assert end_tokens_of(model, tokenizer) == [0]


def test_a_folder_of_another_kind_is_refused(tmp_path: Path) -> None:
    write_rewriter(tmp_path, RewriterSettings(), EDITOR)
    assert read_rewriter(tmp_path, EDITOR) == RewriterSettings()
    with pytest.raises(UserError, match="does not describe a rewriter"):
        read_rewriter(tmp_path)
