"""Would these rewrites be as empathic under anybody's post?"""

from collections.abc import Sequence

from recipes.shared.context_line import own_post
from rewards.identifiers.assessment import Assessment, Judgement
from rewriting import Exchange, Rewrite
from rewriting.exchange import MECHANISMS


class Topical:
    """Finds empathy where the reply names the post."""

    name = "topical"

    def assess(
        self, seeker_posts: Sequence[str], response_posts: Sequence[str], *, rationales: bool = True
    ) -> list[Assessment]:
        found = []
        for post, reply in zip(seeker_posts, response_posts, strict=True):
            fits = float(post in reply)
            judgement = Judgement(0, (1 - fits, 0.0, fits))
            found.append(Assessment(dict.fromkeys(MECHANISMS, judgement)))
        return found


def rewrites(*pairs: tuple[str, str]) -> list[Rewrite]:
    return [Rewrite(Exchange(post, "Ok."), text) for post, text in pairs]


def test_own_words_the_same_words_a_strangers_words_and_none() -> None:
    made = rewrites(("Rex", "Poor Rex!"), ("Tom", "So sorry."), ("Ann", "Tom and Rex?"), ("Ed", ""))
    # Sorted Ann, Ed, Rex, Tom: Ann's reply goes to Rex, Tom's to Ed, Rex' to Ann.
    assert own_post(Topical(), made) == [100.0, 50.0, 0.0, None]


def test_a_single_post_tells_nothing() -> None:
    assert own_post(Topical(), rewrites(("Rex", "Poor Rex!"), ("Rex", "Ok."))) == [None, None]
