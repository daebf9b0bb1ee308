"""The rows of TRL's data sets."""

from recipes.train.grpo.requests import rows_for
from rewriting import Exchange


def test_a_start_token_stands_once() -> None:
    class Tokenizer:
        bos_token = "<s>"

        def __call__(self, text: str, add_special_tokens: bool = True) -> dict[str, list[int]]:
            start = [1] if add_special_tokens else []
            return {"input_ids": [*start, *([1] if text == "<s>" else [])]}

    class Prompt:
        tokenizer = Tokenizer()

        def tokens(self, text: str) -> list[int]:
            return self.tokenizer(text, add_special_tokens=False)["input_ids"]

        def text(self, exchange: Exchange) -> str:
            return f"<s>{exchange.seeker_post}"

    (row,) = rows_for([Exchange("help", "no")], Prompt())
    assert row == {"prompt": "help", "row": 0}
