"""The models behind the built-in terms: loaded when first needed, and then shared."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from rewriting.errors import UserError

CPU_BATCH_SIZE: Final = 8
GPU_BATCH_SIZE: Final = 64


class Models:
    """The models behind the terms, each loaded when a term first needs it, and then shared.

    Each is given as a name or as the loaded object itself; None means the default one.
    Nothing is loaded for terms that are not used.

    batch_size: texts of similar length that a model reads at once; None means 8 on a CPU, where
    more is no faster, and 64 on a GPU. It changes a score by rounding, some 1e-6. With 1 no score
    depends on another text, down to the last bit, and texts that come back are remembered. Language
    models have a budget of tokens instead (`Backbone`), and a loaded object its own batch size.
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
        batch_size: int | None = None,
    ) -> None:
        if batch_size is not None and batch_size < 1:
            raise UserError(f"the batch size of rewards is 1 or more, not {batch_size}.")
        self.asked_batch_size = batch_size
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
    def batch_size(self) -> int:
        """Texts that a model reads at once."""
        return self.asked_batch_size or default_batch_size()

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
        from rewards.identifiers.in_context.gate import encoder_name
        from rewards.identifiers.in_context.identifier import ContextualIdentifier
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
        return ContextualIdentifier.load(
            given, identifier=inner, encoder=encoder, batch_size=self.batch_size
        )

    def classifier(self, name: str) -> tuple[Any, Any]:
        """A sequence-classification model and its tokenizer, for the terms `hf:MODEL`."""
        if name not in self._classifiers:
            from rewriting.runtime.models.named import load_classifier

            self._classifiers[name] = load_classifier(name)
        return self._classifiers[name]

    def _loaded(self, role: str, load: Callable[..., Any]) -> Any:
        given = self._given[role]
        if not isinstance(given, str | Path | None):
            return given
        return load(*([] if given is None else [str(given)]), batch_size=self.batch_size)


def default_batch_size() -> int:
    """What `Models` reads at once where nothing else was asked for."""
    from rewriting.runtime.models.named import default_device

    return CPU_BATCH_SIZE if default_device() == "cpu" else GPU_BATCH_SIZE


def _load_identifier(*name: str, batch_size: int) -> Any:
    from rewards.identifiers.named import load_identifier

    return load_identifier(*name, batch_size=batch_size)


def _load_backbone(*name: str, batch_size: int) -> Any:
    """It batches by tokens, and is shared with the policy."""
    from rewriting.runtime.language_models.backbone import Backbone

    return Backbone.shared(*name)


def _load_sentence_encoder(name: str, batch_size: int) -> Any:
    """Whoever asks it says how many texts at once."""
    from rewriting.runtime.models.named import load_sentence_encoder

    return load_sentence_encoder(name)


def _load_alignment(*name: str, batch_size: int) -> Any:
    from rewards.terms.appraisal_alignment import AlignmentReader

    return AlignmentReader.load("", *name, batch_size=batch_size)


def _load_coherence(*name: str, batch_size: int) -> Any:
    from rewards.terms.coherence import CoherenceModel

    return CoherenceModel.load(*name, batch_size=batch_size)


def _load_reader(*name: str, batch_size: int) -> Any:
    from rewards.reading.reader import SentenceReader

    return SentenceReader.load(*name, batch_size=batch_size)


def _load_kindness(*name: str, batch_size: int) -> Any:
    from rewards.terms.kindness import KindnessModel

    load: Callable[..., Any] = KindnessModel.load if name else KindnessModel.shared
    return load(*name, batch_size=batch_size)


def _load_sense(*name: str, batch_size: int) -> Any:
    from rewards.reading.sense_model import SenseModel

    load: Callable[..., Any] = SenseModel.load if name else SenseModel.shared
    return load(*name, batch_size=batch_size)
