"""Asking the hub once whether it has something, before a library asks it a dozen times."""

from __future__ import annotations

import functools
import os
from typing import Final, Literal

SECONDS: Final = 4.0
Kind = Literal["model", "dataset"]


def offline() -> bool:
    """Whether the hub is switched off."""
    switches = (os.environ.get(key, "") for key in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"))
    return any(value.upper() in {"1", "ON", "YES", "TRUE"} for value in switches)


def hub_problem(name: str, kind: Kind = "model") -> str:
    """Why the hub will not give `name`, in a few words; empty where it will.

    One request without a retry, and one only for each name, however often it is asked about. Where
    the hub answers anything but "there is no such repository", loading will show what it means.
    """
    return "the hub is switched off (HF_HUB_OFFLINE)" if offline() else _asked(name, kind)


@functools.cache
def _asked(name: str, kind: Kind) -> str:
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, RepositoryNotFoundError

    try:
        HfApi().repo_info(name, repo_type=kind, timeout=SECONDS)
    except HFValidationError:
        return "it is no name that the hub could have"
    except RepositoryNotFoundError:
        return f"it has no such {kind}, or a private one"
    except HfHubHTTPError:
        return ""
    except Exception as error:  # each version of its library fails in its own way without a network
        return f"the hub cannot be reached, {type(error).__name__}"
    return ""
