"""The safety gate: what it holds back, what it lets through, and what cannot get past it."""

import random
import re
import tomllib
from pathlib import Path

import pytest

from rewriting import Exchange
from rewriting.ab.study.texts import HELP_RESOURCES
from rewriting.safety import HELP, Gate, Verdict, check_post, gravest, scrub
from rewriting.safety.help import emergency_numbers
from rewriting.safety.outputs.check import FILE as OUTPUTS
from rewriting.safety.rules.check import DANGERS, OTHER_LANGUAGES, ruled
from rewriting.safety.rules.needed_words import needed
from rewriting.safety.rules.phrases import FILE, Kind, compiled, elements, load_phrases
from rewriting.safety.rules.spelling import folded, plain_words, tricky_words, views
from tests.rewriting.safety.spelling_tricks import mutated

POSTS = Path(__file__).parent / "posts"
HALVES = {
    half: tomllib.loads((POSTS / f"{half}.toml").read_text(encoding="utf-8"))
    for half in ("tuning", "held_out")
}
CRISES = ("explicit", "veiled", "coded", "third_person", "method_seeking")
EXPLICIT = (
    "i want to kill myself", "i am going to kill myself", "killing myself", "kill myself",
    "i want to die", "i wish i was dead", "suicide", "i feel suicidal", "i want to commit suicide",
    "thinking about suicide", "i want to end my life", "i will take my own life",
    "i am going to hang myself", "i want to shoot myself", "slit my wrists", "i took an overdose",
    "i do not want to live anymore", "i would be better off dead", "i self harm again",
    "i cut myself again", "i want to drown myself", "i dont want to be alive",
)  # fmt: skip


def flagged(half: str, kind: str) -> float:
    """The share of a kind's posts that are not clear."""
    posts = HALVES[half][kind]
    return sum(not check_post(post).clear for post in posts) / len(posts)


def test_the_set_is_large_enough() -> None:
    for kind in CRISES:
        assert sum(len(half[kind]) for half in HALVES.values()) >= 60
    assert sum(len(half["hard_negatives"]) for half in HALVES.values()) >= 120
    tuning, held_out = (
        {post for rows in half.values() for post in rows} for half in HALVES.values()
    )
    assert not tuning & held_out


@pytest.mark.parametrize(
    ("kind", "least"),
    [
        ("explicit", 0.98),
        ("veiled", 0.85),
        ("coded", 0.85),
        ("third_person", 0.95),
        ("method_seeking", 0.85),
    ],
)
@pytest.mark.parametrize("half", HALVES)
def test_recall(half: str, kind: str, least: float) -> None:
    assert flagged(half, kind) >= least


@pytest.mark.parametrize("half", HALVES)
def test_false_alarms(half: str) -> None:
    assert flagged(half, "hard_negatives") <= 0.10


@pytest.mark.parametrize(
    ("post", "verdict", "reason"),
    [
        ("This homework is killing me.", "clear", ""),
        ("I lost my brother to suicide in May.", "clear", ""),
        ("I want to kill myself.", "crisis", 'explicit: "kill myself"'),
        ("They would all be better off without me.", "possible", "veiled"),
        ("gonna kms", "crisis", 'coded: "kms"'),
        ("My son says he wants to kill himself.", "crisis", "about a third person"),
        ("How many pills does it take to die?", "crisis", "method seeking"),
        ("I'm not suicidal, only sad.", "possible", "denied or past"),
        ("My hero hangs himself in chapter nine.", "clear", ""),
        ("w@n7 70 d!3", "crisis", "explicit, in disguise"),
    ],
)
def test_a_verdict_has_its_reason(post: str, verdict: str, reason: str) -> None:
    found = check_post(post)
    assert found.verdict == verdict
    assert any(one.startswith(reason) for one in found.reasons) or not reason
    assert bool(found.reasons) == (verdict != "clear")


@pytest.mark.parametrize(
    "post",
    [
        "I've inherited a big box of my uncle's vinyl, all in great nick.",
        "In the supermarket the light was too much and he lay on the floor and screamed.",
        "i hugged her, i went and lay on the bathroom floor. im a bad friend.",
        "We said goodbye to Grandad all together, singing, it was a good death.",
        "Passed my driving test at 52, third attempt, only four minors!",
        "He asks each night how many sleeps and I have run out of stories.",
        "I did something stupid. With a glass too much I told her secret at the table.",
        "She asked for help with the printer and I know how to do it.",
        "I stand on the chair to change the bulb and the dog barks at me.",
        "We asked our trainer how to ask about suicide without sounding wooden.",
        "A new handout on self-harm for parents, has anybody printed it?",
        "Three years clean from self-harm, and cake for breakfast.",
        "The season's over. Doc says nine months with the knee.",
        "I felt like death at my desk after the wedding.",
        "I can't go on holding this plank.",
        "We said goodbye properly, my physio and I, after the last session.",
        "Passed at the theory test with my attempt on Friday.",
        "In this card game it is cheaper to end my life points first.",
        "I killed myself with my own grenade, the lobby cheered.",
    ],
)
def test_ordinary_posts_that_once_raised_an_alarm_are_clear(post: str) -> None:
    assert check_post(post) == Verdict("clear")


@pytest.mark.parametrize(
    ("post", "firm", "weak"),
    [
        ("I want to kill myself.", True, False),
        ("The overdose was all over the village by noon.", False, True),
        ("My cousin was on the radio about suicide.", False, True),
        ("The overdose lecture today was heavy going.", False, False),
        ("The radio had a report on suicide among farmers.", False, False),
        ("Two years ago I wanted to die.", False, True),
        ("I want to die.", True, True),
        ("thinking of su1c1de", True, False),
        ("I feel better off without me", False, True),
        ("Lovely weather today.", False, False),
    ],
)
def test_weak_phrases_stand_apart_unless_they_were_hidden(
    post: str, firm: bool, weak: bool
) -> None:
    found = ruled(post)
    assert (found.firm.alarming, found.weak.alarming) == (firm, weak)
    assert check_post(post).alarming == (firm or weak)


def test_a_denial_does_not_hide_the_rest() -> None:
    assert check_post("I'm not suicidal. I just want to die.").verdict == "crisis"


def test_ten_thousand_mutations_of_explicit_phrases_do_not_pass() -> None:
    dice = random.Random(6)
    posts = (mutated(EXPLICIT[number % len(EXPLICIT)], dice) for number in range(10_000))
    assert [post for post in posts if check_post(post).clear] == []


@pytest.mark.parametrize("phrase", EXPLICIT)
def test_nothing_harmless_beside_an_explicit_phrase_hides_it(phrase: str) -> None:
    for before in ("", "I am scared and ", "I'm anxious. ", "I was worried but "):
        for after in ("", ". It hurts", ", the world hates me", " and my hair is falling out"):
            assert check_post(f"{before}{phrase}{after}").verdict == "crisis"


@pytest.mark.parametrize("kind", ["explicit", "third_person"])
def test_the_tuning_half_is_a_crisis_by_name(kind: str) -> None:
    """Not only possibly one: that would stay in the data that a policy learns from."""
    others = [post for post in HALVES["tuning"][kind] if check_post(post).verdict != "crisis"]
    assert all("rather die" in post for post in others)


def test_a_harmless_turn_is_cut_only_where_no_crisis_lies_partly_in_it() -> None:
    phrases = load_phrases()
    assert phrases.without_harmless("she died by suicide") == "she ~"
    assert phrases.without_harmless("i want to die . my hair is red") == (
        "i want to die . my hair is red"
    )
    assert views(folded("I'm sad. I'm here")) == ["im sad . im here", "im sad im here"]


@pytest.mark.parametrize(
    "post",
    [
        "I taught this skill myself.",
        "I will myself to get up in the morning.",
        "No one told me, I had to fill myself in.",
        "I was overjoyed, he gave me 5 stars at university!",
        "I have 2 kids, a dog and a 9-5 job; I do it all by myself.",
        "Call me at 7 or so, I am in Lille with Harry.",
        "My old oven does wonderful bread.",
    ],
)
def test_words_that_only_look_like_it_are_left_alone(post: str) -> None:
    assert check_post(post) == Verdict("clear")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("K1ll mys3lf", "kill myself"),
        ("su*cide", "suicide"),
        ("k i l l  m y s e l f", "kill myself"),
        ("sui cide", "suicide"),
        ("кill mуself", "kill myself"),
        ("kiiilll mysellff", "kill myself"),
        ("klil mysefl", "kill myself"),
        ("want to u\u200bnal!ve", "want to unalive"),
        ("will fill skill wife", "will fill skill wife"),
        ("3rd of 2024, 10am", "3rd of 2024 10am"),
    ],
)
def test_spelling_tricks_are_read(text: str, words: str) -> None:
    assert tricky_words(folded(text)) == words


def test_an_exchange_is_checked_with_its_history_and_its_response() -> None:
    gate = Gate()
    assert gate.check_exchange(Exchange("I failed.", "Try again.")).clear
    earlier = Exchange("Still here.", "Good.", history=("I want to die.",))
    assert gate.check_exchange(earlier).verdict == "crisis"
    answer = gate.check_exchange(Exchange("I failed.", "I want to kill myself too."))
    assert answer.reasons == ('in the response, explicit: "kill myself"',)
    assert gate.check_exchange(Exchange("I failed.", "I can't do this anymore either.")).clear


def test_the_graver_verdict_wins_and_reasons_are_kept_once() -> None:
    one, two = Verdict("possible", ("a", "b")), Verdict("crisis", ("b", "c"))
    assert gravest(one, two) == Verdict("crisis", ("a", "b", "c"))
    assert gravest() == Verdict("clear")
    with pytest.raises(ValueError, match="not 'grave'"):
        Verdict("grave")  # type: ignore[arg-type]


def test_help_names_emergency_numbers_with_their_countries_and_no_helpline() -> None:
    assert "findahelpline.com" in HELP
    assert "112 in Europe, India; 999 in the United Kingdom; 911 in the United States" in HELP
    assert HELP_RESOURCES[0].endswith(f"({emergency_numbers()}).")
    shown = "".join((HELP, *HELP_RESOURCES))
    assert set(re.findall(r"\d+", shown)) == {"112", "999", "911", "000", "111"}


@pytest.mark.parametrize(
    ("text", "scrubbed"),
    [
        ("write to jo.doe+x@mail.example.org.", "write to [mail]."),
        ("jo at gmail dot com or jo (at) gmail (dot) com", "[mail] or [mail]"),
        ("+44 20 7946 0000, (555) 010-0000, 555-0100", "[phone], [phone], [phone]"),
        ("ask u/some_one, @some.one or name#1234", "ask [handle], [handle] or [handle]"),
        ("see https://a.b/c?d=e), www.x.org, t.co/x.", "see [link]), [link], [link]."),
        ("on 2024-01-15 at 10:30, 988 or 741741", "on 2024-01-15 at 10:30, 988 or 741741"),
        ("Call me.In the end it was @ 8.", "Call me.In the end it was @ 8."),
    ],
)
def test_personal_data_is_scrubbed(text: str, scrubbed: str) -> None:
    assert scrub(text) == scrubbed
    assert scrub(scrubbed) == scrubbed


@pytest.mark.parametrize(
    "piece", ["a", "i want to ", "k i ", "1", "a.", "a@", "he says she ", "www.", "kill m* ", "é"]
)
def test_a_line_of_100_kb_is_read_to_its_end(piece: str) -> None:
    """A pattern that explodes on long lines would not come back from this."""
    text = piece * (100_000 // len(piece))
    assert check_post(f"{text} . I want to kill myself").verdict == "crisis"
    assert scrub(f"{text} jo@example.org").endswith("[mail]")


def kinds() -> list[Kind]:
    files = [load_phrases(file) for file in (FILE, DANGERS, OUTPUTS, OTHER_LANGUAGES)]
    return [kind for phrases in files for kind in (phrases.harmless, *phrases.kinds)]


def test_looking_at_words_first_loses_no_phrase() -> None:
    posts = [post for half in HALVES.values() for rows in half.values() for post in rows]
    texts = [plain_words(folded(post)) for post in posts]
    for kind in kinds():
        for text in texts:
            possible = set(kind.index.possible(text))
            matching = {n for n, one in enumerate(kind.phrases) if one.pattern.search(text)}
            assert matching <= possible


@pytest.mark.parametrize(
    ("element", "words"),
    [
        ("kill|end", {"kill", "end"}),
        ("(want to|wanna)", {"want", "wanna"}),
        ("suicid\\w*|pills?", {"suic~", "pill", "pills"}),
        ("\\w+", None),
        ("back ?flip", None),
        ("(?:(?:a|b) c|d)", {"c", "d"}),
    ],
)
def test_needed_words(element: str, words: set[str] | None) -> None:
    assert needed(element) == words


def test_the_language_of_phrases() -> None:
    assert elements("want|(feel like) own? ... !(for|my hair)") == [
        "want|(feel like)", "own?", "...", "!(for|my hair)",
    ]  # fmt: skip
    pattern = compiled("{want} to die !(for)", {"want": "want|wish"}, "just|really").pattern
    assert pattern.search("i wish to really just die")
    assert not pattern.search("i want to die for it")
    assert not pattern.search("i want to diet")
    gap = compiled("how ... die", {}).pattern
    assert gap.search("how a b c d e f die")
    assert not gap.search("how a b c d e f g die")
