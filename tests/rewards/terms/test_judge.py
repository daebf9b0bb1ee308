"""The reward `judge`, the identifier `judge:MODEL`, and options by name."""

from pathlib import Path
from typing import Any

import pytest

from recipes.shared.flags.checks import check_judge_text
from rewards.identifiers.judged import JudgeIdentifier
from rewards.identifiers.named import check_name, load_identifier
from rewards.judge.client import CONCURRENCY, RETRIES, TIMEOUT
from rewards.judge.endpoint import EndpointJudge
from rewards.judge.named import judge_options, open_judge
from rewards.judge.rubric import load_rubric
from rewards.named import Models, build_rewards
from rewards.terms.judge import JudgeTerm
from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS
from tests.rewards.fakes import ODD_TEXTS
from tests.rewards.judge.server import Endpoint, Reply, completion
from tests.tiny_lm import tiny_llama, tiny_tokenizer

COLUMNS: dict[str, Any] = {
    "completions": ["So sorry. Study.", "Study."],
    "seeker_post": ["I failed.", "I failed."],
    "response_post": ["Study.", "Study."],
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny model that reads as much as the shipped rubrics are long, letter by letter."""
    folder = tmp_path_factory.mktemp("judge")
    llama = tiny_llama()
    llama.config.max_position_embeddings = 4096
    llama.save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return str(folder)


def prefers_sorry(request: dict[str, Any]) -> Reply:
    """A judge that likes the word sorry, and A where both or neither have it."""
    said = request["messages"][0]["content"]
    if "Reply A:" not in said:
        return completion("5" if "sorry" in said.split("Reply:")[1] else "1")
    first, second = said.split("Reply A:")[1].split("Reply B:")
    return completion("B" if "sorry" in second and "sorry" not in first else "A")


@pytest.mark.parametrize(("method", "expected"), [("compare", [1.0, 0.0]), ("grade", [4.0, 0.0])])
def test_a_judge_behind_an_endpoint(
    endpoint: Endpoint, tmp_path: Path, method: str, expected: list[float]
) -> None:
    endpoint.replies = prefers_sorry
    options = {
        "weight": 2,
        "model": "any-model",
        "method": method,
        "endpoint": endpoint.url,
        "timeout": 5,
        "retries": 1,
        "concurrency": 2,
        "cache": str(tmp_path / "judge.sqlite"),
    }
    rewards = build_rewards({"judge": options}, Models())
    assert rewards.score(**COLUMNS).terms == {"judge": expected}
    assert rewards(**COLUMNS) == [2 * value for value in expected]
    assert len(endpoint.requests) == 2
    build_rewards({"judge": options}, Models()).score(**COLUMNS)
    assert len(endpoint.requests) == 2  # the second sum has read the cache


def test_how_to_call_is_said_to_the_endpoint_and_not_to_a_wrapper(endpoint: Endpoint) -> None:
    text = f"""
    judge:
      model: any-model
      endpoint: {endpoint.url}
      timeout: 7.5
      retries: 1
      concurrency: 3
    """
    rewards = build_rewards(text)
    term = rewards.terms["judge"].reward
    assert isinstance(term, JudgeTerm)
    back_end = term.ask.judge
    assert isinstance(back_end, EndpointJudge)
    assert (back_end.client.timeout, back_end.client.retries, back_end.concurrency) == (7.5, 1, 3)

    back_end.client.pause = lambda seconds, stop: None
    endpoint.replies = [Reply("busy", 503), completion("A"), completion("A")]
    first_row = {name: column[:1] for name, column in COLUMNS.items()}
    assert rewards(**first_row) == [0.0]  # A in both orders
    assert len(endpoint.requests) == 3
    endpoint.replies = lambda _: Reply("busy", 503)
    with pytest.raises(UserError, match="did not answer in 2 attempts"):
        rewards(**first_row | {"completions": ["Oh."]})


@pytest.mark.parametrize("method", ["compare", "grade", "likelihood"])
def test_a_judge_that_runs_here(model: str, method: str) -> None:
    term = JudgeTerm(model, method=method)
    values = term(**COLUMNS)
    assert values[0] != 0
    assert values[1] == 0
    assert term(**COLUMNS) == values
    swapped = COLUMNS | {
        "completions": COLUMNS["response_post"],
        "response_post": COLUMNS["completions"],
    }
    assert term(**swapped)[0] == pytest.approx(-values[0], abs=1e-6)
    bound = {"compare": 1, "grade": 6, "likelihood": 50}[method]
    assert all(-bound <= value <= bound for value in values)


def test_odd_texts_have_finite_values(model: str) -> None:
    short = [text[:3000] for text in ODD_TEXTS]
    for method in ("compare", "likelihood"):
        rewards = build_rewards({"judge": {"model": model, "method": method}}, Models())
        rewards.score(completions=short, seeker_post=short[::-1], response_post=["Oh."] * 7)


def test_position_bias_is_logged(endpoint: Endpoint) -> None:
    endpoint.replies = lambda _: completion("A")  # whatever stands there
    term = JudgeTerm("any-model", endpoint=endpoint.url, name="kindness")
    logged: dict[str, float] = {}
    values = term(**COLUMNS, log_metric=logged.__setitem__)
    assert values == [0.0, 0.0]
    assert logged == {"rewards/kindness/position_bias": 0.5}


def test_conversations_are_judged_by_what_the_assistant_says(endpoint: Endpoint) -> None:
    endpoint.replies = prefers_sorry
    said = [[{"role": "assistant", "content": text}] for text in COLUMNS["completions"]]
    term = JudgeTerm("any-model", endpoint=endpoint.url)
    assert term(**COLUMNS | {"completions": said}) == [1.0, 0.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "name the model that judges"),
        ({"model": "m", "method": "rank"}, "method is compare or grade or likelihood, not 'rank"),
        ({"model": "m", "rubric": "gone.toml"}, "no rubric 'gone.toml'"),
        ({"model": "m", "modle": "x"}, "no option 'modle'. Did you mean model?"),
        ({"model": "m", "api_key_env": "X"}, "api_key_env is for a model behind a server"),
        ({"model": "m", "endpoint": "nowhere"}, "is no endpoint"),
        ({"model": "m", "endpoint": "http://x", "method": "likelihood"}, "needs a local model"),
        (
            {"model": "m", "endpoint": "http://x", "timeout": 0},
            "timeout is a number of sec",
        ),
        ({"model": "m", "endpoint": "http://x", "timeout": float("inf")}, "timeout is .*, not inf"),
        (
            {"model": "m", "endpoint": "http://x", "retries": -1},
            "retries is a whole number",
        ),
        ({"model": "m", "endpoint": "http://x", "concurrency": 0.5}, "concurrency is .*, not 0.5"),
        ({"model": "m", "batch_size": "many"}, "batch_size is .*, not 'many'"),
        ({"model": "m", "batch_size": True}, "batch_size is .*, not True"),
    ],
)
def test_mistakes_are_explained_before_anything_is_loaded(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=f"reward 'judge': .*{message}"):
        build_rewards({"judge": options}, Models())


def test_options_as_one_text() -> None:
    assert judge_options(" some/model ", open_judge) == {"model": "some/model"}
    text = "{model: m, endpoint: 'http://x', retries: 2}"
    assert judge_options(text, open_judge)["retries"] == 2
    with pytest.raises(UserError, match=r"no option 'modle'\. Did you mean model"):
        judge_options("{modle: m}", open_judge)
    with pytest.raises(UserError, match="cannot be read as YAML"):
        judge_options("{model: [", open_judge)


def test_the_identifier_reads_probabilities_off_the_digits(endpoint: Endpoint) -> None:
    def reply(request: dict[str, Any]) -> Reply:
        said = request["messages"][0]["content"]
        if "communicate explorations" in said:
            return completion("1")
        return completion("2", {"2": -0.5, "0": -1.5, "nothing": -2.0})

    endpoint.replies = reply
    identifier = load_identifier(f"judge:{{model: any-model, endpoint: '{endpoint.url}'}}")
    assert identifier.name == "judge:any-model"
    (spoken, blank) = identifier.assess(["I failed."] * 2, ["So sorry.", " "])
    # e^-1.5 : e^-0.5 = 1 : e.
    emotional = spoken.judgements["emotional_reactions"]
    assert emotional.probabilities == pytest.approx((1 / 3.718282, 0.0, 2.718282 / 3.718282))
    assert (emotional.level, emotional.rationales) == (2, ())
    assert spoken.judgements["explorations"].probabilities == (0.0, 1.0, 0.0)
    assert spoken.empathy == 5
    assert (blank.empathy, blank.expected_empathy) == (0, 0)
    assert len(endpoint.requests) == 3


def test_a_local_model_as_identifier(model: str) -> None:
    (assessment,) = load_identifier(f"judge:{model}").assess(["I failed."], ["Oh no."])
    assert set(assessment.judgements) == set(MECHANISMS)
    for judgement in assessment.judgements.values():
        assert sum(judgement.probabilities) == pytest.approx(1)


def test_an_identifier_needs_a_question_for_each_mechanism() -> None:
    with pytest.raises(UserError, match="rubric grade: an identifier needs"):
        JudgeIdentifier(lambda questions: [], load_rubric("grade", "grade"))
    with pytest.raises(UserError, match="nor a language model as judge:MODEL"):
        load_identifier("judg:x")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{modle: m}", "no option 'modle'"),
        ("{method: grade, model: m}", "no option 'method'"),
        ("{model: m, endpoint: nowhere}", "is no endpoint"),
        ("{model: smollm2-135m, rubric: grade}", "rubric grade: an identifier needs"),
        ("no/such/model", "no/such/model"),
    ],
)
def test_the_name_of_an_identifier_is_checked_before_it_is_loaded(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        check_name(f"judge:{text}")


def test_a_judge_behind_an_endpoint_need_not_be_known_here(endpoint: Endpoint) -> None:
    check_name(f"judge:{{model: any-model, endpoint: '{endpoint.url}'}}")
    check_judge_text(f"{{model: any-model, method: grade, endpoint: '{endpoint.url}'}}")
    assert endpoint.requests == []


def test_the_judge_of_a_table_is_checked_before_it_is_loaded() -> None:
    with pytest.raises(UserError, match="method is compare or grade or likelihood, not 'rank'"):
        check_judge_text("{model: any-model, method: rank}")


def test_defaults_are_the_same_everywhere() -> None:
    import inspect

    for function in (JudgeTerm, JudgeIdentifier.open, open_judge):
        parameters = inspect.signature(function).parameters
        found = [parameters[name].default for name in ("timeout", "retries", "concurrency")]
        assert found == [TIMEOUT, RETRIES, CONCURRENCY]
