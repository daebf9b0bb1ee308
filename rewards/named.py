"""Rewards by name: the built-in ones, and any function of the user's.

    build_rewards({"empathy_change": 1.0, "fluency": 10.0, "my_rewards.py:shorter": 0.1})

Built-in names stand in the one dictionary below; their modules are imported when they are asked
for. `hf:MODEL` is a sequence-classification model of the hub or of a folder. `path.py:function` and
`package.module:function` load anything else. In Python, a function or a callable object may stand
in place of its name.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any, Final, Self

from rewards.calling import CallOptions, with_options
from rewards.judge.options import OPTIONS as JUDGE_OPTIONS
from rewards.loading import load_function, suggestion
from rewards.models import Models
from rewards.option_checks import CALL_OPTIONS, COMMON_OPTIONS, check_call, check_options
from rewards.option_kinds import (
    COUNT,
    FLAG,
    FROM_0,
    NUMBER,
    PROBABILITY,
    SHARE,
    TEXT,
    TEXTS,
    WEIGHTS,
    Kind,
    one_of,
)
from rewards.protocol import Reward, name_of
from rewards.reward_sum import RewardSum, Term, check_weight
from rewriting.errors import UserError

__all__ = [
    "BUILT_INS",
    "COMMON_OPTIONS",
    "BuiltIn",
    "Models",
    "build_rewards",
    "check_rewards",
    "load_function",
    "rewards_mapping",
    "weights_of",
]

HUB: Final = "hf:"


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A factory: makes the term of a class, with the model of `Models` that it needs, if any.

    options: those that the class takes beside its name, and what each may be. They stand here so
    that a mistake is found without importing the class, and torch with it; a test compares them
    with the class. more_checks: the place of a function that is given the options and raises a
    UserError, for what one value alone does not tell; it must not need torch.
    """

    place: str
    model: str | None = None
    options: Mapping[str, Kind] = field(default_factory=dict)
    more_checks: str = ""

    @property
    def own_options(self) -> list[str]:
        """The options that the class itself takes."""
        return list(self.options)

    def check(self, options: Mapping[str, Any]) -> None:
        """Refuse options that the term cannot take, before a model is loaded for nothing."""
        check_options(options, self.own_options)
        for option, value in options.items():
            self.options[option].check(option, value)
        if self.more_checks:
            load_function(self.more_checks)(options)

    def __call__(self, models: Models, **options: Any) -> Reward:
        arguments = [getattr(models, self.model)] if self.model else []
        if self.model and "batch_size" in self.own_options:
            options = {"batch_size": models.batch_size} | options
        term: Reward = load_function(self.place)(*arguments, **options)
        return term


@dataclass(frozen=True, slots=True)
class HubClassifier:
    """A factory: makes the term of a sequence-classification model (terms/classifier.py)."""

    model: str

    @property
    def name(self) -> str:
        """The name in logs: that of the model, without its owner or folder."""
        return self.model.rstrip("/").rpartition("/")[2]

    def check(self, options: Mapping[str, Any]) -> None:
        """Check the options, and that there is such a model."""
        from rewards.classifier_options import ClassifierOptions
        from rewriting.runtime.models.named import check_model

        check_options(options, [field.name for field in fields(ClassifierOptions)])
        ClassifierOptions(**options)
        check_model(self.model)

    def check_labels(self, options: Mapping[str, Any]) -> None:
        """Check by the model's configuration its kind and labels."""
        from rewards.classifier_options import ClassifierOptions
        from rewards.terms.classifier import check_config
        from rewriting.runtime.models.named import load_config

        check_config(load_config(self.model), ClassifierOptions(**options))

    def __call__(self, models: Models, **options: Any) -> Reward:
        from rewards.classifier_options import ClassifierOptions
        from rewards.terms.classifier import ClassifierReward

        asked = models.asked_batch_size
        wanted = ClassifierOptions(**({"batch_size": asked} if asked else {}) | options)
        return ClassifierReward(*models.classifier(self.model), wanted, name=self.name)


BUILT_INS: Final[dict[str, BuiltIn]] = {
    "empathy_change": BuiltIn(
        "rewards.terms.levels.empathy_change:EmpathyChange",
        "identifier",
        {"argmax": FLAG, "batch_size": COUNT},
    ),
    "empathy_in_context": BuiltIn(
        "rewards.terms.levels.empathy_in_context:EmpathyInContext",
        "in_context",
        {"argmax": FLAG, "batch_size": COUNT},
    ),
    "level_alignment": BuiltIn(
        "rewards.terms.levels.level_alignment:LevelAlignment",
        "identifier",
        {
            "weights": WEIGHTS.or_none(),
            "combine": one_of("product", "mean"),
            "calibrated": FROM_0,
            "relative": FLAG,
        },
    ),
    "fluency": BuiltIn(
        "rewards.terms.fluency:Fluency", "language_model", {"role": TEXT.or_none(), "log": FLAG}
    ),
    "perplexity": BuiltIn(
        "rewards.terms.fluency:Perplexity", "language_model", {"role": TEXT.or_none()}
    ),
    "coherence": BuiltIn(
        "rewards.terms.coherence:Coherence", "coherence", {"neutral": NUMBER.or_none()}
    ),
    "mutual_information": BuiltIn(
        "rewards.terms.mutual_information:MutualInformation",
        "language_model",
        {
            "forward_weight": SHARE,
            "normalise": FLAG,
            "forward_role": TEXT.or_none(),
            "backward_role": TEXT,
            "adapter": TEXT.or_none(),
        },
    ),
    "contrast": BuiltIn(
        "rewards.terms.contrast:Contrast",
        "reader",
        {"reply": NUMBER, "worth": NUMBER, "pessimism": FROM_0, "zero": NUMBER},
    ),
    "language_model_contrast": BuiltIn(
        "rewards.terms.contrast:LanguageModelContrast",
        "language_model",
        {"num_posts": COUNT, "posts": TEXTS.or_none()},
    ),
    "kindness": BuiltIn("rewards.terms.kindness:Kindness", "kindness"),
    "sense": BuiltIn("rewards.terms.sense:Sense", "sense", {"floor": PROBABILITY}),
    "specificity": BuiltIn(
        "rewards.terms.specificity:Specificity", "sentence_encoder", {"batch_size": COUNT}
    ),
    "appraisal_alignment": BuiltIn(
        "rewards.terms.appraisal_alignment:AppraisalAlignment",
        "alignment",
        {"advice_weight": SHARE},
    ),
    "edit_size": BuiltIn("rewards.terms.edit_size:EditSize"),
    "repetition": BuiltIn(
        "rewards.terms.repetition:Repetition", options={"n": COUNT, "across_batch": FLAG}
    ),
    "judge": BuiltIn(
        "rewards.terms.judge:JudgeTerm",
        options=JUDGE_OPTIONS,
        more_checks="rewards.judge.options:check_judge",
    ),
}


def build_rewards(
    rewards: Mapping[Any, Any] | str, models: Models | None = None, *, name: str = "reward_sum"
) -> RewardSum:
    """The sum that a mapping describes, as YAML has it, or as a text of YAML from a command line.

    A name, or in Python the function or callable object itself, maps to its weight, or to a mapping
    of `weight` (1 unless given), `scale`, `name` (in logs), `timeout`, `retries` and `concurrency`
    (calling.py), and the term's own options. A function gets these as keywords; a class is made
    with them. A built-in term that takes `timeout`, `retries` or `concurrency` itself gets it
    itself. models: the models of the built-in terms, by default the shipped ones. All names and
    options are looked up before any model is loaded.
    """
    entries = _entries(rewards)
    for entry in entries.values():
        entry.check_labels()
    models = models or Models()
    return RewardSum({key: entry.term(models) for key, entry in entries.items()}, name=name)


def check_rewards(rewards: Mapping[Any, Any] | str) -> None:
    """Say what is wrong with names, weights and options, in milliseconds; nothing is loaded but
    functions of the user's own."""
    _entries(rewards)


def weights_of(rewards: Mapping[Any, Any] | str) -> dict[str, float]:
    """Name in logs → weight; nothing is loaded but functions of the user's own."""
    return {name: entry.weight for name, entry in _entries(rewards).items()}


def _entries(rewards: Mapping[Any, Any] | str) -> dict[str, _Entry]:
    entries: dict[str, _Entry] = {}
    for key, value in rewards_mapping(rewards).items():
        entry = _Entry.read(key, value)
        if entry.name in entries:
            raise UserError(f"two rewards are called {entry.name!r}: give one another `name`.")
        entries[entry.name] = entry
    if not entries:
        raise UserError("a sum of rewards needs at least one reward.")
    return entries


def rewards_mapping(rewards: Mapping[Any, Any] | str) -> dict[Any, Any]:
    """The mapping of names to weights, as it is or read from a text of YAML."""
    if isinstance(rewards, Mapping):
        return dict(rewards)
    import yaml

    from rewriting.runtime.files.yaml_text import read_yaml

    try:
        mapping = read_yaml(rewards)
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise UserError(f"rewards {rewards!r} cannot be read: {reason}") from error
    if not isinstance(mapping, dict):
        message = f"rewards are a mapping such as '{{empathy_change: 1.0}}', not {rewards!r}."
        raise UserError(message)
    return mapping


@dataclass(frozen=True, slots=True)
class _Entry:
    """One entry of the mapping, read and found, before any model is loaded."""

    name: str
    factory: BuiltIn | HubClassifier | Callable[..., Any]
    weight: float
    scale: str | None
    call: CallOptions
    options: dict[str, Any]

    @classmethod
    def read(cls, key: Any, value: Any) -> Self:
        options = dict(value) if isinstance(value, Mapping) else {"weight": value}
        weight, scale = _number(options.pop("weight", 1.0)), options.pop("scale", None)
        check_weight(name_of(key) if callable(key) else str(key), weight, scale)
        factory = key if callable(key) else _find(str(key))
        name = str(options.pop("name", _name_in_logs(key, factory)))
        with _named(name):
            # A term that takes such an option itself knows better what to do with it.
            own = factory.own_options if isinstance(factory, BuiltIn) else []
            given = [option for option in CALL_OPTIONS if option in options and option not in own]
            call = CallOptions(**{option: options.pop(option) for option in given})
            if isinstance(factory, BuiltIn | HubClassifier):
                factory.check(options)
            else:
                check_call(factory, options)
        return cls(name, factory, weight, scale, call, options)

    def check_labels(self) -> None:
        """Check the labels of a classifier, whose configuration takes seconds to read."""
        if isinstance(self.factory, HubClassifier):
            with _named(self.name):
                self.factory.check_labels(self.options)

    def term(self, models: Models) -> Term:
        with _named(self.name):
            reward = with_options(self._reward(models), self.call, self.name)
        return Term(reward, self.weight, self.scale)

    def _reward(self, models: Models) -> Reward:
        if isinstance(self.factory, BuiltIn | HubClassifier):
            return self.factory(models, **self.options)
        if isinstance(self.factory, type):
            made: Reward = self.factory(**self.options)
            return made
        return functools.partial(self.factory, **self.options) if self.options else self.factory


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Say which reward it is that something is wrong with."""
    try:
        yield
    except (TypeError, ValueError, UserError) as error:
        raise UserError(f"reward {name!r}: {error}") from error


def _name_in_logs(key: Any, factory: BuiltIn | HubClassifier | Callable[..., Any]) -> str:
    if isinstance(factory, BuiltIn):
        return str(key)
    return factory.name if isinstance(factory, HubClassifier) else name_of(factory)


def _find(key: str) -> BuiltIn | HubClassifier | Callable[..., Any]:
    if key in BUILT_INS:
        return BUILT_INS[key]
    if key.startswith(HUB):
        return HubClassifier(key.removeprefix(HUB))
    if ":" in key:
        return load_function(key)
    raise UserError(
        f"there is no reward {key!r}. {suggestion(key, list(BUILT_INS))} "
        "A function of your own is path.py:function or package.module:function; a model of the "
        "hub is hf:MODEL."
    )


def _number(weight: Any) -> Any:
    """The number in a text such as 1e-3, which YAML 1.1 does not take for one."""
    if isinstance(weight, str):
        try:
            return float(weight)
        except ValueError:
            return weight
    return weight
