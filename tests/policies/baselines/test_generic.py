"""One kind sentence for everybody."""

from policies.baselines.generic import GenericPolicy
from rewriting import Exchange, apply_edits


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
