"""The grammar of edits: what an answer means, and which answers mean nothing."""

import pytest

from policies.chat import grammar
from policies.chat.grammar import parse_edits, rewrite_of, unquoted, write_edits
from rewriting import Edit, Exchange, apply_edits, split_sentences
from rewriting.data import load_exchanges

REPLY = "Start early. Use tests. Good luck."
SENTENCES = ("Start early.", "Use tests.", "Good luck.")


@pytest.mark.parametrize(
    ("answer", "rewritten"),
    [
        ("KEEP", REPLY),
        ("keep.", REPLY),
        ("INSERT 1: That hurts.", f"That hurts. {REPLY}"),
        ("INSERT 2: That hurts.", "Start early. That hurts. Use tests. Good luck."),
        ("INSERT 4: How are you?", f"{REPLY} How are you?"),
        ("REPLACE 3: I believe in you!", "Start early. Use tests. I believe in you!"),
        ("insert 1: That hurts.", f"That hurts. {REPLY}"),
        ("Replace 1 : That hurts.", "That hurts. Use tests. Good luck."),
        ('INSERT 1: "That hurts."', f"That hurts. {REPLY}"),
        ("INSERT 1: “That hurts.”", f"That hurts. {REPLY}"),
        ("**INSERT 1:** That hurts.", f"That hurts. {REPLY}"),
        ("1. INSERT 1: That hurts.", f"That hurts. {REPLY}"),
        ("- INSERT 1 - That hurts.", f"That hurts. {REPLY}"),
        ("REPLACE 3:   I  am here 💛", "Start early. Use tests. I am here 💛"),
    ],
)
def test_an_answer_of_one_edit(answer: str, rewritten: str) -> None:
    rewrite, problem = rewrite_of(Exchange("I failed.", REPLY), answer)
    assert (rewrite.rewritten_response, problem) == (rewritten, "")
    assert apply_edits(REPLY, rewrite.edits) == rewritten


def test_numbers_are_those_of_the_original_reply_whatever_the_order() -> None:
    answer = "INSERT 4: How are you?\nREPLACE 2: Rest a little.\nINSERT 1: That hurts."
    rewrite, problem = rewrite_of(Exchange("I failed.", REPLY), answer)
    assert problem == ""
    assert rewrite.edits == (
        Edit.insert(0, "That hurts."),
        Edit.replace(2, "Rest a little."),
        Edit.insert(4, "How are you?"),
    )
    new = "That hurts. Start early. Rest a little. Good luck. How are you?"
    assert rewrite.rewritten_response == new
    assert rewrite.new_text == "That hurts. Rest a little. How are you?"


def test_two_insertions_at_one_place_stand_as_written_and_before_a_replacement() -> None:
    answer = "REPLACE 2: C c.\nINSERT 2: A a.\nINSERT 2: B b."
    rewrite, _ = rewrite_of(Exchange("I failed.", REPLY), answer)
    assert rewrite.rewritten_response == "Start early. A a. B b. C c. Good luck."


def test_prose_around_the_edits_is_passed_over() -> None:
    answer = "Sure! Here are my edits:\n\nINSERT 1: That hurts.\n\nInsert 2 sentences more if you"
    assert parse_edits(answer, SENTENCES).edits == (Edit.insert(0, "That hurts."),)


def test_a_line_that_stands_there_twice_counts_once() -> None:
    parsed = parse_edits("INSERT 1: That hurts.\nINSERT 1: That hurts.", SENTENCES)
    assert parsed.edits == (Edit.insert(0, "That hurts."),)
    assert parse_edits("REPLACE 1: Ok.\nREPLACE 1: Ok.\n", SENTENCES).problem == ""


def test_a_sentence_that_replaces_itself_is_no_edit() -> None:
    assert parse_edits("REPLACE 2: Use tests.", SENTENCES) == grammar.Parsed()


def test_a_last_line_that_is_cut_off_is_left_out() -> None:
    parsed = parse_edits("INSERT 1: That hurts.\nINSERT 4: How are you when", SENTENCES)
    assert parsed == grammar.Parsed((Edit.insert(0, "That hurts."),))
    ended = parse_edits("INSERT 4: tell me more\n", SENTENCES)
    assert ended.edits == (Edit.insert(3, "tell me more"),)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("", grammar.NO_EDIT),
        ("I am so sorry to hear that.", grammar.NO_EDIT),
        ("INSERT two: That hurts.", grammar.NO_EDIT),
        ("INSERT 0: That hurts.", grammar.NO_PLACE),
        ("INSERT -1: That hurts.", grammar.NO_PLACE),
        ("INSERT 5: That hurts.", grammar.NO_PLACE),
        ("REPLACE 4: That hurts.", grammar.NO_PLACE),
        ("INSERT 1: That hurts.\nREPLACE 9: No.", grammar.NO_PLACE),
        ("INSERT 1:\n", grammar.EMPTY),
        ('INSERT 1: ""\n', grammar.EMPTY),
        ("INSERT 1: ...", grammar.EMPTY),
        ("INSERT 1: That hur", grammar.CUT_OFF),
        ("INSERT 1:", grammar.CUT_OFF),
        ("KEEP\nINSERT 1: That hurts.", grammar.KEEPS_AND_EDITS),
        ("REPLACE 1: That hurts.\nREPLACE 1: Oh no.", grammar.TWO_IN_ONE_PLACE),
    ],
)
def test_what_cannot_be_read_keeps_the_reply(answer: str, problem: str) -> None:
    rewrite, found = rewrite_of(Exchange("I failed.", REPLY), answer)
    assert found == problem
    assert not rewrite.changed
    assert rewrite.edits == ()


def test_an_empty_reply_can_only_be_added_to() -> None:
    rewrite, problem = rewrite_of(Exchange("I failed.", ""), "INSERT 1: That hurts.")
    assert (rewrite.rewritten_response, problem) == ("That hurts.", "")
    assert rewrite_of(Exchange("I failed.", ""), "REPLACE 1: No.")[1] == grammar.NO_PLACE


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ('"I hear you."', "I hear you."),
        ("'I hear you.'", "I hear you."),
        ('"Rest" is easy to say, "sleep" too', '"Rest" is easy to say, "sleep" too'),
        ('You said "enough".', 'You said "enough".'),
        ('"I hear you.', "I hear you."),
        ("'Cause it hurts.", "'Cause it hurts."),
        (" **I hear you.** ", "I hear you."),
    ],
)
def test_quotation_marks_around_a_sentence_go(text: str, plain: str) -> None:
    assert unquoted(text) == plain


def test_edits_are_written_in_the_numbers_of_the_original_reply() -> None:
    edits = [
        Edit.insert(0, "A a."),
        Edit.replace(2, "B b."),
        Edit.insert(4, "C c."),
        Edit.replace(0, "D d."),  # in place of the first insertion, which is gone
    ]
    assert write_edits(edits, 3) == "INSERT 1: D d.\nREPLACE 2: B b.\nINSERT 4: C c."
    assert write_edits([Edit.keep()], 3) == write_edits([], 3) == "KEEP"


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_the_edits_of_the_sample_can_be_said_and_read(split: str) -> None:
    wrong = cut = count = 0
    for exchange in load_exchanges(f"sample:rewrites_{split}"):
        edits = [Edit(**edit) for edit in exchange.extra["edits"]]
        sentences = split_sentences(exchange.response_post).texts
        answer = write_edits(edits, len(sentences))
        count += 1
        cut += parse_edits(answer, sentences) != parse_edits(answer + "\n", sentences)
        rewrite, problem = rewrite_of(exchange, answer + "\n")
        wrong += bool(problem) or (
            rewrite.rewritten_response != exchange.extra["rewritten_response"]
        )
    assert wrong == 0
    assert cut <= count // 20  # sentences without a stop
