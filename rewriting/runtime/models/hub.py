"""Folders that come from the hub and go there: plain files, never code.

A folder is brought into the cache folder as files, not as links, and once in a process: what is
used at the end of a job is what was used at its start.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Final

from rewriting.errors import UserError
from rewriting.runtime.files.folder_checks import check_folder
from rewriting.runtime.models.named import cache_folder

HUB_ID: Final = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9_][\w.-]*")
FILES: Final = ("*.safetensors", "*.json", "README.md", "model/*.txt", "model/*.jinja")
"""What is exchanged. A whole model has vocabularies and a chat template as text beside its JSON."""
SECONDS: Final = 10.0


def is_hub_id(name: str) -> bool:
    """Whether a name can be that of a repository: ORG/NAME, and no path into a folder here."""
    owner = name.partition("/")[0]
    return HUB_ID.fullmatch(name) is not None and not Path(owner).is_dir()


def found_folder(name: str | Path, *needed: str) -> Path:
    """The folder of a model of ours: the one of that path, or that of a hub id, brought now.

    needed: as in `hub_folder`. Where the name is neither, the path need not exist.
    """
    folder = Path(name).expanduser()
    if isinstance(name, Path) or folder.is_dir() or not is_hub_id(name):
        return folder
    folder = hub_folder(name, *needed)
    check_folder(folder)
    return folder


def folder_with(name: str, needed: str) -> Path | None:
    """The folder of that name with a file in it, here or on the hub; None where there is none.

    For names that may also be those of models of other libraries.
    """
    try:
        folder = found_folder(name, needed)
    except UserError:  # whoever loads the other kind says what is wrong with the name
        return None
    return folder if (folder / needed).is_file() else None


@functools.cache
def hub_folder(name: str, *needed: str) -> Path:
    """The folder of a repository, with its files of the kinds in FILES.

    needed: files of which it has one, or it is not what is looked for. They are brought alone
    first, so that a repository of something else costs no gigabytes.
    """
    import huggingface_hub

    folder = cache_folder() / "hub" / name.replace("/", "--")
    with explained(f"{name!r} is no folder here, and could not be had from the hub"):
        for files in ([*needed], [*FILES]):
            huggingface_hub.snapshot_download(
                name, local_dir=folder, allow_patterns=files, etag_timeout=SECONDS
            )
            if not any((folder / one).is_file() for one in needed):
                missing = " or ".join(needed)
                raise UserError(f"{name} on the hub is of another kind: it has no {missing}.")
    return folder


def files_to_send(folder: Path) -> tuple[list[Path], list[Path]]:
    """The files of a folder that are exchanged, and those that stay. Hidden ones are not counted.

    The paths are relative to the folder.
    """
    paths = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    seen = [path for path in paths if not any(part.startswith(".") for part in path.parts)]
    sent = [path for path in seen if any(fnmatch(path.as_posix(), kind) for kind in FILES)]
    return sent, [path for path in seen if path not in sent]


def send_folder(
    name: str, folder: Path, files: Sequence[Path], card: str, *, private: bool, message: str
) -> str:
    """Send files of a folder to the hub in one commit, with this card, and give the address."""
    from huggingface_hub import CommitOperationAdd, HfApi

    contents: dict[str, Any] = {path.as_posix(): folder / path for path in files}
    contents["README.md"] = card.encode()
    operations = [CommitOperationAdd(path, content) for path, content in contents.items()]
    with explained(f"{name} could not be sent to the hub"):
        hub = HfApi()
        hub.whoami()  # says at once that the hub is out of reach, or that nobody is logged in
        address = hub.create_repo(name, private=private, exist_ok=True)
        hub.create_commit(name, operations, commit_message=message)
    return str(address)


@contextmanager
def explained(failed: str) -> Iterator[None]:
    """What the hub or the network says against it, as one line that begins with what failed."""
    from huggingface_hub import constants
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    # An error of the hub is one of its HTTP library too, whichever that is in this release.
    network: tuple[type[Exception], ...] = tuple(
        base
        for base in HfHubHTTPError.__bases__
        if base is not OSError and issubclass(base, Exception)
    )
    failures: Any = (OSError, HFValidationError, *network)  # mypy cannot follow a tuple of types
    try:
        yield
    except failures as error:
        told = (str(error).strip() or type(error).__name__).split("\n")[0].split(". ")[0][:200]
        reason = "the hub is switched off (HF_HUB_OFFLINE)" if constants.HF_HUB_OFFLINE else told
        raise UserError(
            f"{failed} ({reason}). Connect to the hub; `hf auth login` for what needs an account."
        ) from error
