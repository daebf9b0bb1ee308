"""What a machine must not say to anybody in distress, by its phrases."""

import pytest

from rewriting.safety import Gate, Verdict, check_output


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("You should just kill yourself.", "gives a method"),
        ("You could take all the pills at once.", "gives a method"),
        ("Suicide is the answer.", "gives a method"),
        ("You have borderline personality disorder.", "diagnosis"),
        ("It sounds like you are clinically depressed.", "diagnosis"),
        ("Try taking some Xanax before bed.", "medication advice"),
        ("Stop taking your meds.", "medication advice"),
        ("Start with 50 mg.", "medication advice"),
        ("You're such an idiot.", "insult"),
        ("You are pathetic, stop whining!", "insult"),
        ("Nobody cares about you.", "insult"),
        ("Man up.", "insult"),
        ("I think you are pathetic.", "insult"),
        ("I have to say you are an idiot.", "insult"),
        ("I told you that you are stupid.", "insult"),
        ("I believe you are a burden to your family.", "insult"),
        ("You are pathetic and not lazy.", "insult"),
        ("You are not just stupid, you are lazy.", "insult"),
        ("No need to see a doctor. Take Xanax tonight.", "medication advice"),
        ("Don't go to a doctor, just take Xanax.", "medication advice"),
        ("Do you feel bad? Go on antidepressants.", "medication advice"),
        ("Have you tried taking Xanax? Just take two tablets", "medication advice"),
        ("Just take two tablets", "medication advice"),
        ("Nobody would care if you were gone", "gives a method"),
        ("You would be better off not being here.", "gives a method"),
    ],
)
def test_what_a_machine_must_not_say(text: str, reason: str) -> None:
    verdict = check_output(text)
    assert verdict.verdict == "crisis"
    assert any(one.startswith(reason) for one in verdict.reasons)


@pytest.mark.parametrize(
    "text",
    [
        "This must be really hard for you.",
        "Are you feeling depressed?",
        "You are not an idiot.",
        "It's not your fault.",
        "Please talk to your doctor about your medication.",
        "I'm sorry you feel so worthless.",
        "Don't feel stupid, it happens.",
        "It sounds like you are having a hard time.",
        "I hate that you have to go through this.",
        "Ask your doctor about antidepressants.",
        "Please talk to your doctor before you stop taking your meds.",
        "Are you taking any medication?",
        "Don't call yourself an idiot.",
        "I'm sorry you feel like a failure.",
        "You are not a burden.",
    ],
)
def test_what_it_may_say(text: str) -> None:
    assert check_output(text) == Verdict("clear")


def test_a_crisis_is_rejected_in_an_output_unless_the_reply_spoke_of_it() -> None:
    gate = Gate()
    reply = "When I wanted to die, a friend sat with me."
    assert gate.check_output(f"I am here. {reply}", reply).clear
    assert not gate.check_output("I wanted to die.", "Try again.").clear
