"""The models behind the built-in terms: loaded when first needed, and then shared."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any


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
        reader: Any = None,
        kindness: Any = None,
        sense: Any = None,
    ) -> None:
        self._given = {
            "identifier": identifier,
            "language_model": language_model,
            "sentence_encoder": sentence_encoder,
            "coherence": coherence,
            "alignment": alignment,
            "context": context,
            "reader": reader,
            "kindness": kindness,
            "sense": sense,
        }
        self._classifiers: dict[str, tuple[Any, Any]] = {}

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
    def reader(self) -> Any:
        """The `SentenceReader` of contrast: that of the identifier, where it has one."""
        from rewards.identifiers.named import is_grounded

        if self._given["reader"] is None and is_grounded(self._given["identifier"]):
            return self.identifier.reader
        return self._loaded("reader", _load_reader)

    @cached_property
    def kindness(self) -> Any:
        """The `KindnessModel`, which says whether a sentence hurts."""
        return self._loaded("kindness", _load_kindness)

    @cached_property
    def sense(self) -> Any:
        """The `SenseModel`, which says whether a sentence is right for its post."""
        return self._loaded("sense", _load_sense)

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
        # Without an identifier of the caller's, the gate stands beside the one it was fitted with.
        own_gate = self._given["identifier"] is None and self._given["context"] is not None
        inner = None if own_gate else self.identifier
        if isinstance(inner, ContextualIdentifier):
            if self._given["context"] is None:
                return inner
            inner = inner.identifier
        # The gate's numbers belong to one encoder: the shared one serves if it is that one.
        shared = self._given["sentence_encoder"]
        same = not isinstance(shared, str | Path) or str(shared) == encoder_name(given)
        encoder = self.sentence_encoder if same else None
        return ContextualIdentifier.load(given, identifier=inner, encoder=encoder)

    def classifier(self, name: str) -> tuple[Any, Any]:
        """A sequence-classification model and its tokenizer, for the terms `hf:MODEL`."""
        if name not in self._classifiers:
            from rewriting.runtime.models import load_classifier

            self._classifiers[name] = load_classifier(name)
        return self._classifiers[name]

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


def _load_reader(*name: str) -> Any:
    from rewards.reading.reader import SentenceReader

    return SentenceReader.load(*name)


def _load_kindness(*name: str) -> Any:
    from rewards.kindness import KindnessModel

    return KindnessModel.load(*name) if name else KindnessModel.shared()


def _load_sense(*name: str) -> Any:
    from rewards.sense import SenseModel

    return SenseModel.load(*name) if name else SenseModel.shared()
