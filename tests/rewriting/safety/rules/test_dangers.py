"""Violence at home and sexual abuse by their grammar; a hint says nothing by itself."""

import pytest

from rewriting.safety import check_post
from rewriting.safety.rules.check import ruled

VIOLENCE = (
    "My husband hits me when the soup is cold.",
    "He put his hands round my neck and cried afterwards.",
    "She held a knife to my back, my own wife.",
    "Next time he won't stop, he says.",
    "He said if I leave he will find us and none of us will walk away.",
    "My boyfriend grabbed me by the throat.",
    "My brothers took my passport.",
    "They locked me in the cellar again.",
    "I am afraid of my stepdad.",
)
ABUSE = (
    "My uncle comes into my room when Mum is at work.",
    "I said no and he carried on.",
    "He forced himself on me.",
    "His hand went up my skirt in the car.",
    "It is grandpas secret game and I don't want it.",
    "Is it rape if he is my husband?",
    "A wife can't refuse, he says.",
    "I woke up and my clothes were on wrong.",
    "The landlord says there are other ways to pay.",
    "He films me through the bathroom door.",
)
HARMLESS = (
    "He beats me at chess every Sunday.",
    "She hit me up for lunch.",
    "I broke my wrist at the climbing wall.",
    "My husband put his hand on my shoulder.",
    "My mum came into my room to say goodnight.",
    "The coach gives us all lifts home.",
    "He kicks us off the pitch at nine.",
    "The film forced me to think.",
    "She touched me deeply with her song.",
    "Our secret recipe is lemon.",
    "My brother locked me out of my account.",
    "Dad took my phone and my games for a week.",
)
HINTS = (
    ("I flinch when a door shuts.", "may be violence at home"),
    ("The concealer never covers the marks on my jaw.", "may be violence at home"),
    ("My door has no lock.", "may be sexual abuse"),
    ("There is no me after Sunday, lol.", "despair as a joke"),
    ("I haven't eaten since Monday.", "may be an eating disorder"),
    ("The voices tell me to open the window.", "may be psychosis"),
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [(text, "violence at home") for text in VIOLENCE] + [(text, "sexual abuse") for text in ABUSE],
)
def test_who_does_what_to_whom_is_a_crisis_with_its_kind(text: str, reason: str) -> None:
    found = check_post(text)
    assert found.verdict == "crisis"
    assert any(one.startswith(f'{reason}: "') for one in found.reasons), found.reasons


@pytest.mark.parametrize("text", HARMLESS)
def test_the_harmless_sentence_beside_it_is_clear(text: str) -> None:
    assert check_post(text).clear


@pytest.mark.parametrize(("text", "reason"), HINTS)
def test_a_hint_is_named_and_is_nothing_without_the_reader(text: str, reason: str) -> None:
    found = ruled(text)
    assert any(one.startswith(f'{reason}: "') for one in found.hints), found.hints
    assert found.verdict.clear


def test_the_same_hint_twice_is_one() -> None:
    assert len(ruled("I flinch. You flinch.").hints) == 1


@pytest.mark.parametrize(
    "text",
    [
        "Mi tío abusa de mí.",
        "Mein Onkel kommt jede Nacht in mein Zimmer.",
        "Mon oncle me touche toutes les nuits.",
        "Meu padrasto abusa de mim.",
        "Mi marido me pega cuando bebe.",
    ],
)
def test_abuse_is_found_in_four_other_languages(text: str) -> None:
    assert check_post(text).verdict == "crisis"


@pytest.mark.parametrize(
    "text",
    [
        "Mi marido me pega su resfriado cada invierno.",
        "Ich lache mich tot, der Hund hat die Torte gefressen.",
        "Mon chat me touche le nez chaque matin.",
        "O meu gato vem ao meu quarto comer.",
    ],
)
def test_what_only_sounds_like_it_there_raises_no_alarm(text: str) -> None:
    assert not check_post(text).alarming
