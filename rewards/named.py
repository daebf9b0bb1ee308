"""Rewards by name: the built-in ones, and any function of the user's.

    build_rewards({"empathy_change": 1.0, "fluency": 10.0, "my_rewards.py:shorter": 0.1}, Models())

Built-in names stand in the one dictionary below; their modules are imported when they are asked
for. `path.py:function` and `package.module:function` load anything else.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Self

from rewards.loading import load_function, suggestion
from rewards.protocol import Reward, name_of
from rewards.reward_sum import RewardSum, Term, check_weight
from rewriting.errors import UserError


class Models:
    """The models behind the terms, each loaded when a term first needs it, and then shared.

    Each is given as a name or as the loaded object itself; None means the default one.
    Nothing is loaded for terms that are not used.
    """

    def __init__(
        self,
        *,
        identifier: Any = None,
        language_model: Any = "smollm2-135m",
        sentence_encoder: Any = "minilm-l6",
        coherence: Any = None,
        alignment: Any = None,
        context: Any = None,
    ) -> None:
        self._given = {
            "identifier": identifier,
            "language_model": language_model,
            "sentence_encoder": sentence_encoder,
            "coherence": coherence,
            "alignment": alignment,
            "context": context,
        }

    @cached_property
    def identifier(self) -> Any:
        """Who says how empathic a response is: an `Identifier`."""
        return self._loaded("identifier", _load_identifier)

    @cached_property
    def language_model(self) -> Any:
        """The frozen `Backbone` of fluency, perplexity and mutual information."""
        return self._loaded("language_model", _load_backbone)

    @cached_property
    def sentence_encoder(self) -> Any:
        """A sentence-transformers model."""
        return self._loaded("sentence_encoder", _load_sentence_encoder)

    @cached_property
    def coherence(self) -> Any:
        """The `CoherenceModel`, which says whether sentences belong together."""
        return self._loaded("coherence", _load_coherence)

    @cached_property
    def alignment(self) -> Any:
        """The `AlignmentReader`, which says what of a post a reply meets."""
        return self._loaded("alignment", _load_alignment)

    @cached_property
    def in_context(self) -> Any:
        """The identifier with a gate for context beside it: a `ContextualIdentifier`.

        `context` is a folder of `train.py context`, None the shipped one. Where the identifier is
        such a one already, it is that.
        """
        from rewards.identifiers.context_gate import encoder_name
        from rewards.identifiers.in_context import ContextualIdentifier
        from rewards.identifiers.named import IN_CONTEXT, NAMES

        given = self._given["context"] or NAMES[IN_CONTEXT]
        if not isinstance(given, str | Path):
            return given
        if isinstance(self.identifier, ContextualIdentifier):
            return self.identifier
        # The gate's numbers belong to one encoder: the shared one serves if it is that one.
        shared = self._given["sentence_encoder"]
        same = not isinstance(shared, str | Path) or str(shared) == encoder_name(given)
        encoder = self.sentence_encoder if same else None
        return ContextualIdentifier.load(given, identifier=self.identifier, encoder=encoder)

    def _loaded(self, role: str, load: Callable[..., Any]) -> Any:
        given = self._given[role]
        if given is None:
            return load()
        return load(str(given)) if isinstance(given, str | Path) else given


def _load_identifier(*name: str) -> Any:
    from rewards.identifiers.named import load_identifier

    return load_identifier(*name)


def _load_backbone(*name: str) -> Any:
    from rewriting.runtime.backbone import Backbone

    return Backbone.shared(*name)


def _load_sentence_encoder(name: str) -> Any:
    from rewriting.runtime.models import load_sentence_encoder

    return load_sentence_encoder(name)


def _load_alignment(*name: str) -> Any:
    from rewards.appraisal_alignment import AlignmentReader

    return AlignmentReader.load("", *name)


def _load_coherence(*name: str) -> Any:
    from rewards.coherence import CoherenceModel

    return CoherenceModel.load(*name)


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A factory: makes the term of a class, with the model of `Models` that it needs, if any."""

    place: str
    model: str | None = None

    def __call__(self, models: Models, **options: Any) -> Reward:
        kind = load_function(self.place)
        known = list(inspect.signature(kind).parameters)[1 if self.model else 0 :]
        for option in options:  # before a model is loaded for nothing
            if option not in known:
                raise UserError(f"it has no option {option!r}. {suggestion(option, known)}")
        arguments = [getattr(models, self.model)] if self.model else []
        term: Reward = kind(*arguments, **options)
        return term


BUILT_INS: Final[dict[str, BuiltIn]] = {
    "empathy_change": BuiltIn("rewards.empathy_change:EmpathyChange", "identifier"),
    "empathy_in_context": BuiltIn("rewards.empathy_in_context:EmpathyInContext", "in_context"),
    "level_alignment": BuiltIn("rewards.level_alignment:LevelAlignment", "identifier"),
    "fluency": BuiltIn("rewards.fluency:Fluency", "language_model"),
    "perplexity": BuiltIn("rewards.perplexity:Perplexity", "language_model"),
    "coherence": BuiltIn("rewards.coherence:Coherence", "coherence"),
    "mutual_information": BuiltIn("rewards.mutual_information:MutualInformation", "language_model"),
    "specificity": BuiltIn("rewards.specificity:Specificity", "sentence_encoder"),
    "appraisal_alignment": BuiltIn("rewards.appraisal_alignment:AppraisalAlignment", "alignment"),
    "edit_size": BuiltIn("rewards.edit_size:EditSize"),
    "repetition": BuiltIn("rewards.repetition:Repetition"),
    "judge": BuiltIn("rewards.judge.term:JudgeTerm"),
}


def build_rewards(
    rewards: Mapping[str, Any] | str, models: Models, *, name: str = "reward_sum"
) -> RewardSum:
    """The sum that a mapping describes, as YAML has it, or as a text of YAML from a command line.

    A name maps to its weight, or to a mapping of `weight` (1 unless given), `scale`, `name` (in
    logs), and the term's own options. A function of the user's gets options as keywords; a class
    of the user's is made with them. All names are looked up before any model is loaded.
    """
    if isinstance(rewards, str):
        rewards = _parsed(rewards)
    wanted: dict[str, _Wanted] = {}
    for key, value in rewards.items():
        one = _Wanted.read(str(key), value)
        if one.name in wanted:
            raise UserError(f"two rewards are called {one.name!r}: give one another `name`.")
        wanted[one.name] = one
    return RewardSum({key: one.term(models) for key, one in wanted.items()}, name=name)


def _parsed(text: str) -> dict[str, Any]:
    import yaml

    try:
        rewards = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UserError(f"rewards {text!r} cannot be read: {error}") from error
    if not isinstance(rewards, dict):
        raise UserError(f"rewards are a mapping such as '{{empathy_change: 1.0}}', not {text!r}.")
    return rewards


@dataclass(frozen=True, slots=True)
class _Wanted:
    """One entry of the mapping, read and found, before any model is loaded."""

    name: str
    factory: BuiltIn | Callable[..., Any]
    weight: float
    scale: str | None
    options: dict[str, Any]

    @classmethod
    def read(cls, key: str, value: Any) -> Self:
        options = dict(value) if isinstance(value, Mapping) else {"weight": value}
        weight, scale = _number(options.pop("weight", 1.0)), options.pop("scale", None)
        check_weight(key, weight, scale)
        factory = _find(key)
        shown = key if isinstance(factory, BuiltIn) else name_of(factory)
        return cls(str(options.pop("name", shown)), factory, weight, scale, options)

    def term(self, models: Models) -> Term:
        try:
            return Term(self._reward(models), self.weight, self.scale)
        except (TypeError, ValueError, UserError) as error:
            raise UserError(f"reward {self.name!r}: {error}") from error

    def _reward(self, models: Models) -> Reward:
        if isinstance(self.factory, BuiltIn):
            return self.factory(models, **self.options)
        if isinstance(self.factory, type):
            made: Reward = self.factory(**self.options)
            return made
        return functools.partial(self.factory, **self.options) if self.options else self.factory


def _find(key: str) -> BuiltIn | Callable[..., Any]:
    if key in BUILT_INS:
        return BUILT_INS[key]
    if ":" in key:
        return load_function(key)
    raise UserError(
        f"there is no reward {key!r}. {suggestion(key, list(BUILT_INS))} "
        "A function of your own is path.py:function or package.module:function."
    )


def _number(weight: Any) -> Any:
    """The number in a text such as 1e-3, which YAML 1.1 does not take for one."""
    if isinstance(weight, str):
        try:
            return float(weight)
        except ValueError:
            return weight
    return weight
