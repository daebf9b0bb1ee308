"""What goes wrong when a model is looked for or loaded, in one line that a user can act on."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from rewriting.errors import UserError
from rewriting.runtime.loading import did_you_mean
from rewriting.runtime.models.catalogue import SHORT_NAMES


@contextmanager
def explained(name: str, source: str) -> Iterator[None]:
    """The page-long messages of transformers about names and networks, as one line.

    source: the folder, or the hub id, that the model called `name` is loaded from.
    """
    from safetensors import SafetensorError
    from torch import OutOfMemoryError

    try:
        yield
    except (UserError, MemoryError, OutOfMemoryError, ImportError):  # not the fault of the model
        raise
    except SafetensorError as error:
        raise UserError(f"the weights of {name} are damaged ({error}). Get them again.") from error
    except OSError as error:
        reason = str(error).strip().split("\n")[0]
        if os.path.isdir(source):
            raise unloadable(name, error) from error
        raise UserError(hub_failure(name, reason)) from error
    except ValueError as error:
        if "Unrecognized configuration class" in str(error):
            raise UserError(f"{name} is another kind of model than is needed here.") from error
        if "trust_remote_code" in str(error):
            raise UserError(f"{name} runs code from the hub, which is not allowed.") from error
        if "backend tokenizer" in str(error):
            raise UserError(f"{name} holds no tokenizer that can be loaded.") from error
        if "attention" in str(error) and "support" in str(error):
            reason = str(error).strip().split(". ")[0]
            raise UserError(f"{name}: {reason}. Set attention to eager.") from error
        raise unloadable(name, error) from error
    except BaseException as error:  # settings of a folder can make the libraries fail in any way
        failed = isinstance(error, Exception) or type(error).__name__ == "PanicException"  # of Rust
        if failed and os.path.isdir(source):
            raise unloadable(name, error) from error
        raise


def unloadable(name: str, error: BaseException) -> UserError:
    """The first line of an error of the libraries; the rest is for those who wrote them."""
    reason = (str(error).strip() or type(error).__name__).split("\n")[0].rstrip(".")
    return UserError(f"{name} does not hold a loadable model: {reason[:200]}.")


def hub_failure(name: str, reason: str) -> str:
    """What to say of a model that is neither here nor to be had from the hub."""
    return (
        f"model {name!r} is no folder here and did not come from the hub ({reason.rstrip('.')}). "
        f"Connect to the hub, or give the path of a folder with the model. {known_names(name)}"
    )


def known_names(name: str) -> str:
    """The short names, the one that was probably meant before the others."""
    return f"{did_you_mean(name, SHORT_NAMES)}Names that need no hub: {', '.join(SHORT_NAMES)}."
