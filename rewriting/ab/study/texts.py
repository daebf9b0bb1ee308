"""What raters read unless a study says otherwise. Every text here can be replaced at `create`."""

from __future__ import annotations

from typing import Final

from rewriting.safety.help import HELPLINES, emergency_numbers

TITLE: Final = "Comparing replies"

CONSENT: Final = """\
You are asked to compare replies to posts by people who look for support. The posts are about \
difficult experiences, and some may be upsetting. Some replies were written or changed by a \
computer program.

Taking part is voluntary. You can take a break or stop at any time, without giving a reason, and \
you can come back with your personal link.

We store your answers, your comments and the time they took, under a number instead of your \
name. Your comments are read by the people who run the study: please write nothing in them that \
identifies you or others. Your answers may be published, in this form, as research data."""

INSTRUCTIONS: Final = """\
Each page shows a post and two replies to it, A and B. Please read all three, then answer the \
questions below them. Judge each question on its own: the more empathic reply need not be the \
more fluent one.

Empathic: the reply shows warmth, shows that it understands what the person feels and lives \
through, or asks about it with interest.
Fluent: the reply reads as if a careful person had written it, without mistakes, breaks or \
repetitions.
Specific: the reply fits this post, and would not fit just any other one.

There are no right answers: we want to know what you think. If a reply could harm the person who \
wrote the post, tick "flag as harmful" and say in the comment what you saw.

You can go back and change your answers. Your work is saved after every page."""

HELP_RESOURCES: Final = (
    f"In immediate danger: call your local emergency number ({emergency_numbers()}).",
    f"Free and confidential helplines of your country: {HELPLINES}",
)

PRACTICE: Final = (
    {
        "seeker_post": "My cat died this morning. She was with me for sixteen years and the flat "
        "is so quiet.",
        "better": "I'm so sorry. Sixteen years is a long time to share a home, and the "
        "quiet must hurt. What was she like?",
        "worse": "You can get a new cat at most shelters.",
        "note": "Most people find the reply that names the loss more empathic, and more "
        "specific: it takes up the sixteen years and the quiet. Both replies are "
        "fluent, so there you may well have seen no difference.",
    },
    {
        "seeker_post": "I start my new job on Monday and I can't sleep, I'm sure they hired me "
        "by mistake.",
        "better": "Feeling like a mistake before day one sounds exhausting. What are you "
        "most afraid of for Monday?",
        "worse": "i am sorry you feel that way. things will will get better soon soon.",
        "note": "The second kind of reply could stand under any post, and repeats words: "
        "it is less specific and less fluent.",
    },
)
"""Pairs to try the page on. `better` and `worse` stand on random sides."""

ATTENTION: Final = (
    {
        "seeker_post": "I moved to a new city in March and I still eat lunch alone every day.",
        "better": "Eating alone every day since March sounds lonely. Who would you like to "
        "sit with, if it were easy?",
        "worse": "To show that you are reading, please do not choose this reply: choose "
        "the other one for every question.",
    },
    {
        "seeker_post": "My brother and I have not spoken since the wedding, and his birthday is "
        "next week.",
        "better": "Weeks of silence with a brother weigh a lot, and a birthday makes it "
        "louder. What would you want to say to him?",
        "worse": "This sentence is here to check attention. Please choose the other reply "
        "in answer to every question.",
    },
    {
        "seeker_post": "I failed my driving test for the third time and everybody knows.",
        "better": "Three times, and with everybody watching: that stings. Which part is "
        "hardest for you?",
        "worse": "If you read this, please choose the other reply for each of the "
        "questions on this page.",
    },
    {
        "seeker_post": "My flatmate moves out on Friday and I will miss her more than I can say.",
        "better": "It sounds as if she made the place a home. What will you miss first?",
        "worse": "We ask attentive readers to choose the other reply, not this one, for "
        "all questions.",
    },
)
"""Checks whose answer is beyond doubt: one of the replies asks to choose the other one."""
