"""The built-in terms: their models are loaded once and late, and wrong options are found before."""

from importlib.util import find_spec
from typing import Any

import pytest

from rewards.named import (
    BUILT_INS,
    BuiltIn,
    Models,
    build_rewards,
    check_rewards,
    load_function,
)
from rewriting.errors import UserError
from rewriting.runtime.models import named as runtime_models
from tests.rewards.fakes import FakeEncoder


def test_no_model_is_loaded_for_a_mapping_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str) -> None:
        raise AssertionError

    monkeypatch.setattr(runtime_models, "load_sentence_encoder", load)
    with pytest.raises(UserError, match="no reward 'nonsense'"):
        build_rewards({"specificity": 1, "nonsense": 1}, Models())
    with pytest.raises(UserError, match=r"no option .batchsize.\. Did you mean batch_size"):
        build_rewards({"specificity": {"batchsize": 1}}, Models())
    with pytest.raises(UserError, match=r"'repetition': it has no option .k."):
        build_rewards({"specificity": 1, "repetition": {"k": 1}}, Models())


def test_models_are_loaded_by_name_once_and_only_when_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded: list[str] = []

    def load(name: str) -> FakeEncoder:
        loaded.append(name)
        return FakeEncoder()

    monkeypatch.setattr(runtime_models, "load_sentence_encoder", load)
    holder = Models(sentence_encoder="my-encoder")
    build_rewards({"edit_size": 1}, holder)
    assert loaded == []
    first = build_rewards({"specificity": 1}, holder).terms["specificity"].reward
    second = build_rewards({"specificity": 1}, holder).terms["specificity"].reward
    assert loaded == ["my-encoder"]
    assert first is not second
    assert getattr(first, "encoder") is getattr(second, "encoder")  # noqa: B009


@pytest.mark.parametrize("name", BUILT_INS)
def test_every_built_in_name_leads_to_a_class_and_a_model(name: str) -> None:
    factory = BUILT_INS[name]
    assert find_spec(factory.place.split(":")[0]) is not None
    assert isinstance(load_function(factory.place), type)
    assert factory.model is None or factory.model in vars(Models)


@pytest.mark.parametrize(
    ("rewards", "message"),
    [
        ({"fluency": {"log": "false"}}, "reward 'fluency': log is true or false, not 'false'"),
        ({"empathy_change": {"batch_size": 0}}, "batch_size is a whole number from 1 on, not 0"),
        ({"contrast": {"reply": "big"}}, "reward 'contrast': reply is a number, not 'big'"),
        ({"contrast": {"worth": float("nan")}}, "worth is a number, not nan"),
        ({"contrast": {"pessimism": -1}}, "pessimism is a number from 0 on, not -1"),
        ({"sense": {"floor": 2}}, "floor is a probability above 0, not 2"),
        ({"coherence": {"neutral": "0.5"}}, "neutral is a number, or null, not '0.5'"),
        ({"mutual_information": {"forward_weight": 2}}, "is a number from 0 to 1, not 2"),
        ({"language_model_contrast": {"posts": "one"}}, "posts is a list of texts, none of"),
        ({"level_alignment": {"combine": "sum"}}, "combine is product or mean, not 'sum'"),
        ({"level_alignment": {"weights": {"warmth": 1}}}, "weights is a number from 0 on for some"),
        ({"judge": 1}, "reward 'judge': name the model that judges"),
        ({"judge": {"model": "m", "method": 3}}, "method is compare or grade or likelihood, not 3"),
        ({"judge": {"model": "m", "rubric": 5}}, "rubric is a text, not 5"),
        ({"judge": {"model": "m", "rubric": "grades"}}, "there is no rubric 'grades'"),
        ({"judge": {"model": "m", "endpoint": 5}}, "endpoint is a text, not 5"),
        ({"judge": {"model": "m", "endpoint": "here"}}, "'here' is no endpoint"),
        ({"judge": {"model": "m", "api_key_env": "KEY"}}, "name its `endpoint` too"),
        ({"judge": {"model": "no/such/model"}}, "reward 'judge': .*no/such/model"),
    ],
)
def test_wrong_values_are_found_before_a_model_is_loaded(
    rewards: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BuiltIn, "__call__", lambda *_: pytest.fail("a term was made"))
    with pytest.raises(UserError, match=message):
        check_rewards(rewards)
    with pytest.raises(UserError, match=message):
        build_rewards(rewards)


@pytest.mark.parametrize("name", BUILT_INS)
def test_the_defaults_of_a_term_are_of_the_kinds_that_its_options_may_be(name: str) -> None:
    import inspect

    parameters = inspect.signature(load_function(BUILT_INS[name].place)).parameters
    for option, kind in BUILT_INS[name].options.items():
        kind.check(option, parameters[option].default)


@pytest.mark.parametrize("name", BUILT_INS)
def test_the_options_of_a_term_are_those_of_its_class(name: str) -> None:
    """They are written down a second time, so that a typo is found before torch is imported."""
    import inspect

    factory = BUILT_INS[name]
    parameters = list(inspect.signature(load_function(factory.place)).parameters)
    own = parameters[1 if factory.model else 0 :]
    assert factory.own_options == [option for option in own if option != "name"]
