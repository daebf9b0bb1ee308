"""The two policies that need no training."""

from collections.abc import Sequence
from typing import cast

import pytest

from policies.edit_settings import read_settings
from policies.generated import GeneratedPolicy
from policies.generic import GenericPolicy
from policies.named import POLICIES, TRAINED, load_policy, policy_folder
from policies.prompted import PromptedPolicy
from policies.rewrite_prompt import clean_reply
from rewriting import Exchange, UserError, apply_edits
from rewriting.data import load_exchanges

WEIGHT_FILES = ("adapter_model.safetensors", "position_head.safetensors")


def test_generic_says_the_same_to_everybody() -> None:
    exchanges = [Exchange("I failed.", "Study more."), Exchange("I moved.", "- unpack\n- rest")]
    rewrites = GenericPolicy().rewrite(exchanges, seed=0)
    assert [rewrite.rewritten_response for rewrite in rewrites] == [
        "This must have been really hard for you. Study more.",
        "This must have been really hard for you.\n- unpack\n- rest",
    ]
    for rewrite in rewrites:
        again = apply_edits(rewrite.exchange.response_post, rewrite.edits)
        assert again == rewrite.rewritten_response


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ('I hear you. Rest."\n\nThis is warmer.', "I hear you. Rest."),
        ("I hear you.\nNote: warm.", "I hear you."),
        ("I hear you. You can alw", "I hear you."),
        ("I hear you and you can alw", ""),
        ("Dear friend,\n\nI hear you.", ""),
        ('"', ""),
        ("", ""),
    ],
)
def test_a_reply_ends_with_its_quotation(text: str, reply: str) -> None:
    assert clean_reply(text) == reply


def test_an_unknown_policy_is_named() -> None:
    with pytest.raises(UserError, match=r"no policy 'nobody'.*generic"):
        load_policy("nobody")
    assert set(POLICIES) >= {"generic", "prompted"}


@pytest.mark.integration
def test_prompted_rewrites_deterministically_whatever_the_batch() -> None:
    policy = PromptedPolicy(max_new_tokens=48, batch_size=3)
    exchanges = list(load_exchanges("sample:test", limit=4))
    rewrites = policy.rewrite(exchanges, seed=1)
    assert [rewrite.exchange for rewrite in rewrites] == exchanges
    assert any(rewrite.changed for rewrite in rewrites)
    assert all(rewrite.rewritten_response.strip() for rewrite in rewrites)
    assert policy.rewrite(exchanges[3:4], seed=1) == rewrites[3:4]
    assert policy.rewrite(exchanges, seed=2) != rewrites


def test_generated_asks_again_before_it_gives_up() -> None:
    class Halting:
        def __init__(self) -> None:
            self.asked: list[list[str]] = []

        def replies(self, exchanges: Sequence[Exchange], *, seed: int) -> list[str]:
            self.asked.append([one.id for one in exchanges])
            return [
                "Yes." if one.id in ("a", "bbb"[: len(self.asked)]) else "" for one in exchanges
            ]

    policy, model = GeneratedPolicy.__new__(GeneratedPolicy), Halting()
    policy.model = cast(PromptedPolicy, model)
    exchanges = [Exchange("I failed.", "Study.", id=name) for name in ("a", "bb", "c")]
    found = [one.rewritten_response for one in policy.rewrite(exchanges, seed=0)]
    assert found == ["Yes.", "Yes.", "…"]
    assert model.asked == [["a", "bb", "c"], ["bb", "c"], ["c"]]


@pytest.mark.integration
def test_generated_answers_without_the_peers_reply() -> None:
    policy = GeneratedPolicy(max_new_tokens=32, batch_size=2)
    secret = Exchange("I failed my exam again.", "Zanzibar is warm. Go there.")
    text = policy.model.prompt.text(secret)
    assert "I failed my exam again." in text
    assert "Zanzibar" not in text
    (rewrite,) = policy.rewrite([secret], seed=0)
    assert rewrite.rewritten_response.strip()
    assert rewrite.rewritten_response != secret.response_post
    assert not rewrite.edits
    assert policy.rewrite([secret], seed=0) == [rewrite]


@pytest.mark.integration
def test_a_long_post_keeps_the_instruction_and_its_own_end() -> None:
    policy = PromptedPolicy(max_prompt_tokens=200)
    text = policy.prompt.text(Exchange("word " * 900 + "the end", "Well. " * 400))
    assert "You help people on a peer support site" in text
    assert "the end" in text
    assert text.endswith('Here is the warmer answer: "')
    assert len(policy.prompt.tokens(text)) <= 210  # seams between cut texts may add a token or two


@pytest.mark.parametrize("name", [name for name in TRAINED if name.startswith("partner")])
def test_what_is_shipped_is_whole(name: str) -> None:
    folder = policy_folder(name)
    backbone, settings = read_settings(folder)
    assert backbone == "smollm2-135m"
    assert settings.rank
    sizes = [(folder / part).stat().st_size for part in WEIGHT_FILES]
    assert sum(sizes) < 6_000_000
    assert "python train.py partner" in (folder / "README.md").read_text(encoding="utf-8")
