"""From names and weights to a sum of rewards."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rewards.named import (
    BUILT_INS,
    BuiltIn,
    Models,
    build_rewards,
)
from rewards.option_kinds import COUNT, SECONDS
from rewards.protocol import name_of
from rewriting.errors import UserError
from tests.rewards.fakes import FakeEncoder, FakeIdentifier

USERS = """
def shorter(completions, response_post, factor=1, **_):
    return [factor * (len(r) - len(c)) for c, r in zip(completions, response_post)]

class Constant:
    def __init__(self, value=1.0):
        self.value = value

    def __call__(self, completions, **_):
        return [self.value] * len(completions)
"""
COLUMNS: dict[str, Any] = {
    "completions": ["I am sorry.", "Stop."],
    "seeker_post": ["The exam.", "The exam."],
    "response_post": ["Stop.", "Stop."],
}


@pytest.fixture
def users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_rewards.py").write_text(USERS)
    monkeypatch.chdir(tmp_path)


def models() -> Models:
    return Models(identifier=FakeIdentifier(), sentence_encoder=FakeEncoder())


@pytest.mark.usefixtures("users")
def test_weights_options_and_functions_of_the_users() -> None:
    rewards = build_rewards(
        {
            "empathy_change": {"weight": 2, "argmax": True, "scale": "std"},
            "edit_size": 0.5,
            "repetition": {"n": 2, "weight": 0},
            "my_rewards.py:shorter": 0.1,
            "my_rewards:Constant": {"weight": 1, "value": 5.0, "name": "bonus"},
        },
        models(),
    )
    scores = rewards.score(**COLUMNS)
    assert scores.terms == {
        "empathy_change": [2.0, 0.0],
        "edit_size": [-1.0, 0.0],
        "repetition": [0.0, 0.0],
        "shorter": [-6.0, 0.0],
        "bonus": [5.0, 5.0],
    }
    assert scores.totals == pytest.approx([4 - 0.5 - 0.6 + 5, 5.0])
    assert list(rewards.state_dict()) == ["empathy_change"]


@pytest.mark.usefixtures("users")
def test_options_of_a_function_are_its_keywords() -> None:
    rewards = build_rewards({"my_rewards.py:shorter": {"factor": 10}}, models())
    assert rewards.score(**COLUMNS).terms == {"shorter": [-60, 0]}


@pytest.mark.usefixtures("users")
def test_a_text_of_yaml_as_on_the_command_line() -> None:
    text = "{edit_size: 1e-1, my_rewards.py:shorter: {weight: 2, factor: 3}}"
    rewards = build_rewards(text, models())
    assert [(name, term.weight) for name, term in rewards.terms.items()] == [
        ("edit_size", 0.1),
        ("shorter", 2),
    ]
    assert build_rewards('{"edit_size": 1}', models()).terms["edit_size"].weight == 1


@pytest.mark.usefixtures("users")
@pytest.mark.parametrize(
    ("rewards", "message"),
    [
        ({}, "at least one reward"),
        ({"empathy_chnge": 1}, "no reward 'empathy_chnge'. Did you mean empathy_change?"),
        ({"applause": 1}, "no reward 'applause'. There is: empathy_change, empathy_in_context, "),
        ({"edit_size": "high"}, "weight of reward 'edit_size' is 'high'"),
        ({"edit_size": None}, "weight of reward 'edit_size' is None"),
        ({"edit_size": {"scale": "max"}}, "scale of reward 'edit_size' is 'max'"),
        ({"repetition": {"k": 2}}, "reward 'repetition': it has no option 'k'. There is: n, acr"),
        ({"repetition": {"n": 0}}, "reward 'repetition': n is a whole number from 1 on"),
        ({"my_rewards.py:shortr": 1}, "Did you mean shorter?"),
        ({"my_rewards.py:Constant": {"height": 1}}, "reward 'Constant': .*'height'"),
        ({"my_rewards.py:shorter": {"facter": 2}}, "no option 'facter'. Did you mean factor?"),
        ({"my_rewards.py:shorter": 1, "my_rewards:shorter": 1}, "two rewards are called 'shorter'"),
        ("edit_size", "rewards are a mapping"),
        ("{edit_size: [", "cannot be read"),
        ("{edit_size: 1, edit_size: 2}", "cannot be read: 'edit_size' stands twice"),
    ],
)
def test_mistakes_are_explained(rewards: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        build_rewards(rewards, models())


def shorter(
    completions: list[str], response_post: list[str], factor: int = 1, **_: Any
) -> list[float]:
    return [factor * (len(r) - len(c)) for c, r in zip(completions, response_post, strict=True)]


class Constant:
    def __init__(self, value: float = 1.0) -> None:
        self.value = value

    def __call__(self, completions: list[str], bonus: float = 0.0, **_: Any) -> list[float]:
        return [self.value + bonus] * len(completions)


class Needy(Constant):
    def __init__(self, limit: float) -> None:
        super().__init__(limit)


def test_functions_objects_and_classes_stand_in_place_of_their_names() -> None:
    async def patient(completions: list[str], **_: Any) -> list[float]:
        return [0.5] * len(completions)

    rewards = build_rewards(
        {
            "edit_size": 0.5,
            shorter: {"weight": 0.1, "factor": 10},
            patient: 2,
            Constant(3.0): {"weight": 2, "name": "mine", "scale": "std"},
            Constant(4.0): {"bonus": 1.0},
            Constant: {"weight": 0, "value": 7.0, "name": "made"},
        }
    )
    scores = rewards.score(**COLUMNS)
    assert scores.terms == {
        "edit_size": [-1.0, 0.0],
        "shorter": [-60.0, 0.0],
        "patient": [0.5, 0.5],
        "mine": [3.0, 3.0],
        "Constant": [5.0, 5.0],
        "made": [7.0, 7.0],
    }
    assert scores.totals == pytest.approx([-0.5 - 6 + 1 + 6 + 5, 12.0])
    assert list(rewards.state_dict()) == ["mine"]


@pytest.mark.parametrize(
    ("rewards", "message"),
    [
        ({shorter: "much"}, "weight of reward 'shorter' is 'much'"),
        ({Constant(): {"scale": "max"}}, "scale of reward 'Constant' is 'max'"),
        ({Constant: {"height": 1}}, "reward 'Constant': .*'height'"),
        ({Constant(): 1, Constant(2.0): 1}, "two rewards are called 'Constant': give one another"),
        ({shorter: {"retries": -1}}, "reward 'shorter': retries is -1"),
        ({3: 1}, "no reward '3'"),
        ({Needy: 1}, "reward 'Needy': missing a required argument: 'limit'"),
        ({Constant(): {"bonnus": 2}}, "reward 'Constant': .*Did you mean bonus"),
    ],
)
def test_mistakes_with_callables_are_explained(rewards: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        build_rewards(rewards)


@pytest.mark.usefixtures("users")
def test_how_a_term_is_called_is_said_in_its_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rewards.calling.FIRST_PAUSE", 0.0)
    calls: list[list[str]] = []

    def judge(completions: list[str], **options: Any) -> list[float]:
        assert "timeout" not in options
        calls.append(completions)
        if len(calls) == 1:
            raise OSError("connection refused")
        return [float(len(text)) for text in completions]

    options = {"weight": 1, "timeout": 30, "retries": 2, "concurrency": 1, "name": "judged"}
    assert build_rewards({judge: options})(**COLUMNS) == [11.0, 5.0]
    assert calls == [["I am sorry."], ["Stop."], ["I am sorry."]]
    text = "{edit_size: {timeout: 60, retries: 1}, my_rewards.py:shorter: {concurrency: 2}}"
    assert build_rewards(text).score(**COLUMNS).terms == {
        "edit_size": [-1.0, 0.0],
        "shorter": [-6.0, 0.0],
    }


class Patient:
    """Takes two of the three options itself; its value tells them and the rows of the call."""

    def __init__(self, timeout: float = 1.0, concurrency: int = 1) -> None:
        self.options = 100 * timeout + 10 * concurrency
        self.calls = 0

    def __call__(self, completions: list[str], **_: Any) -> list[float]:
        self.calls += 1
        if self.calls == 1:
            raise OSError("connection refused")
        return [self.options + len(completions)] * len(completions)


def test_a_built_in_term_gets_the_options_that_it_takes_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rewards.calling.FIRST_PAUSE", 0.0)
    monkeypatch.setitem(
        BUILT_INS,
        "patient",
        BuiltIn(
            "tests.rewards.test_named:Patient", options={"timeout": SECONDS, "concurrency": COUNT}
        ),
    )
    # `retries` is not its own, so the call is repeated for it; rows are not asked for one by one.
    options = {"timeout": 5, "retries": 1, "concurrency": 8}
    assert build_rewards({"patient": options})(**COLUMNS) == [582.0, 582.0]
    with pytest.raises(UserError, match="raised OSError: connection refused"):
        build_rewards({"patient": options | {"retries": 0}})(**COLUMNS)


@pytest.mark.parametrize(
    ("rewards", "message"),
    [
        ({"edit_size": {"timeout": "soon"}}, "reward 'edit_size': timeout is 'soon'"),
        ({"edit_size": {"retry": 1}}, "it has no option 'retry'. Did you mean retries"),
        (
            {"repetition": {"across_batch": True, "concurrency": 4}},
            "reward 'repetition': it compares the rows of a batch",
        ),
    ],
)
def test_calls_that_cannot_be_are_refused(rewards: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        build_rewards(rewards)


def test_the_package_offers_its_two_entrances() -> None:
    import rewards
    from rewards.identifiers.named import load_identifier

    assert rewards.build_rewards is build_rewards
    assert rewards.load_identifier is load_identifier
    assert set(rewards.__all__) <= set(dir(rewards))
    with pytest.raises(AttributeError, match="no attribute 'build_reward'"):
        rewards.build_reward  # noqa: B018


@pytest.mark.parametrize(
    "name", ["empathy_change", "level_alignment", "specificity", "edit_size", "repetition"]
)
def test_a_term_is_called_by_its_name_in_logs(name: str) -> None:
    assert name_of(BUILT_INS[name](models())) == name


@dataclass
class Recipe:
    """A recipe's dataclass: a text on the command line, a mapping in YAML."""

    rewards: str = "{edit_size: 1.0}"


@pytest.mark.usefixtures("users")
@pytest.mark.parametrize(
    ("arguments", "weights"),
    [
        ([], {"edit_size": 1.0}),
        (["--config", "recipe.yaml"], {"edit_size": 2.0, "shorter": 0.5}),
        (["--rewards", "{my_rewards.py:shorter: 0.1}"], {"shorter": 0.1}),
        (
            ["--config", "recipe.yaml", "--rewards", "{repetition: {weight: 3, n: 2}}"],
            {"repetition": 3},
        ),
    ],
)
def test_rewards_from_a_yaml_file_and_from_flags(
    arguments: list[str], weights: dict[str, float]
) -> None:
    from trl import TrlParser

    Path("recipe.yaml").write_text("rewards:\n  edit_size: 2.0\n  my_rewards.py:shorter: 0.5\n")
    (recipe,) = TrlParser((Recipe,)).parse_args_and_config(arguments)
    built = build_rewards(recipe.rewards, models())
    assert {name: term.weight for name, term in built.terms.items()} == weights
