"""The language check: what is not English is never called clear, and English is not unchecked."""

import json

import pytest

from rewriting.data.load import SAMPLE
from rewriting.safety import check_post
from rewriting.safety.rules.languages import is_english

ENGLISH = [
    "ok",
    "idk lol",
    "Siobhan O'Malley",
    "cnt slep agian, evry nite same thougt",
    "La la la, that song again",
    "Ciao bella, he said to me.",
    "кill mуself",
    "My abuela used to say que sera sera.",
    "москва",
    "yesss queen!!!",
    "u up?",
]
FOREIGN = [
    "Hoy he perdido mi trabajo y estoy muy triste.",
    "Ich habe heute meine Arbeit verloren und bin sehr traurig.",
    "J'ai perdu mon travail aujourd'hui et je suis très triste.",
    "Hoje perdi o meu trabalho e estou muito triste.",
    "Oggi ho perso il mio lavoro e mi sento davvero triste e solo.",
    "Vandaag ben ik mijn baan kwijtgeraakt en ik voel me heel verdrietig.",
    "Dzisiaj stracilem prace i jest mi bardzo smutno z tego powodu.",
    "Сегодня я потерял работу и мне очень грустно.",
    "今日は仕事を失ってとても悲しいです。",
    "لقد فقدت وظيفتي اليوم وأنا حزين جدا",
    "Estoy cansado",
    "I am fine today. Pero no quiero hablar con nadie de esto.",
]


@pytest.mark.parametrize("text", ENGLISH)
def test_short_texts_names_slang_and_tricks_may_be_english(text: str) -> None:
    assert is_english(text)


@pytest.mark.parametrize("text", FOREIGN)
def test_another_language_is_unchecked(text: str) -> None:
    verdict = check_post(text)
    assert (verdict.verdict, verdict.reasons) == ("unchecked", ("not English: unchecked",))
    assert not verdict.clear
    assert not verdict.alarming


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Ya no aguanto más, quiero morir.", "Spanish"),
        ("Mañana me voy a quitar la vida, no quiero seguir viviendo.", "Spanish"),
        ("Mi marido me pega y tengo miedo.", "Spanish"),
        ("Ich will nicht mehr leben.", "German"),
        ("ich bringe mich heute noch um", "German"),
        ("Ich möchte einfach nur noch sterben.", "German"),
        ("Ich ritze mich wieder jede Nacht.", "German"),
        ("Je veux mourir, je n'en peux plus.", "French"),
        ("J'ai envie d'en finir ce soir.", "French"),
        ("je vais me suicider", "French"),
        ("Não quero mais viver.", "Portuguese"),
        ("nao aguento mais, vou me matar", "Portuguese"),
        ("Tomei uma caixa inteira de comprimidos.", "Portuguese"),
    ],
)
def test_explicit_crises_in_four_languages_are_found(text: str, language: str) -> None:
    verdict = check_post(text)
    assert verdict.verdict == "crisis"
    assert any(reason.startswith(f"explicit, in {language}") for reason in verdict.reasons)


def test_english_corpora_are_not_unchecked() -> None:
    """At most 0.3 % of them; and the phrases of other languages find nothing in them."""
    texts = []
    for name in ("crisis_train", "crisis_dev", "train", "calm", "everyday", "technical_support"):
        lines = (SAMPLE / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines]
        texts += [row.get("text") or row["seeker_post"] for row in rows]
    unread = [text for text in texts if not is_english(text)]
    assert len(unread) <= 0.003 * len(texts), unread[:5]
    found = [text for text in texts if "explicit, in " in " ".join(check_post(text).reasons)]
    assert not [text for text in found if "disguise" not in " ".join(check_post(text).reasons)]
