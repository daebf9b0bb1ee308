"""Public data sets, fetched from where their authors keep them.

    fetch("epitome", Path("data"))          # data/epitome with three files

A download is checked before it can be seen: against its SHA-256 where one is known, and row by row
for what the data is known to be. Nothing is unpacked but the named members, and no code is run.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rewriting.data.load import load_exchanges
from rewriting.errors import UserError
from rewriting.runtime.files.disk import disk_errors
from rewriting.runtime.files.folders import only_writer, temporary_beside
from rewriting.runtime.loading import suggestion

SECONDS: Final = 20.0
LARGEST: Final = 200_000_000
GITHUB: Final = "https://raw.githubusercontent.com/behavioral-data/Empathy-Mental-Health"
COMMIT: Final = "741a8df4d3bc5301f0426e0c72e1d8e354c42fd3"
"""The commit that brought EPITOME's files; they have not changed since."""


@dataclass(frozen=True, slots=True)
class PublicData:
    """Where a data set is and what it holds.

    files: name → address. sha256: address → checksum, where one is known. members: of an archive,
    member → name of the file. least: the number of exchanges that it has at least.
    """

    home: str
    license: str
    files: Mapping[str, str]
    least: int
    sha256: Mapping[str, str]
    members: Mapping[str, str]


DIALOGUES: Final = (
    "https://dl.fbaipublicfiles.com/parlai/empatheticdialogues/empatheticdialogues.tar.gz"
)
PUBLIC: Final[dict[str, PublicData]] = {
    "epitome": PublicData(
        home="https://github.com/behavioral-data/Empathy-Mental-Health (folder dataset)",
        license="that of its repository",
        files={
            f"{name}-reddit.csv": f"{GITHUB}/{COMMIT}/dataset/{name}-reddit.csv"
            for name in ("emotional-reactions", "interpretations", "explorations")
        },
        least=3_000,
        sha256={},  # none is published: the commit is pinned, and every row is read
        members={},
    ),
    "empathetic_dialogues": PublicData(
        home="https://github.com/facebookresearch/EmpatheticDialogues",
        license="CC BY-NC 4.0",
        files={"empatheticdialogues.tar.gz": DIALOGUES},
        least=30_000,
        sha256={DIALOGUES: "56f234d77b7dd1f005fd365bb17769cfe346c3c84295b69bc069c8ccb83be03d"},
        members={f"empatheticdialogues/{name}.csv": f"{name}.csv" for name in ("train", "valid")},
    ),
}


def fetch(name: str, output: Path) -> Path:
    """The folder of a public data set under `output`, downloaded unless it is there."""
    if name not in PUBLIC:
        raise UserError(f"there is no public data set {name!r}. {suggestion(name, list(PUBLIC))}")
    data, folder = PUBLIC[name], output.expanduser() / name
    names = list(data.members.values()) or list(data.files)
    if folder.exists():
        missing = [one for one in names if not (folder / one).is_file()]
        if missing:
            raise UserError(
                f"{folder} exists and lacks {missing[0]}. Remove the folder, or name another "
                "--output."
            )
        return folder
    try:
        contents = downloaded(data)
    except (OSError, ValueError, tarfile.TarError, KeyError, EOFError) as error:
        raise _by_hand(name, data, folder, names, _reason(error)) from error
    with disk_errors(folder), only_writer(folder), temporary_beside(folder) as temporary:
        whole = temporary / "whole"
        whole.mkdir(parents=True)
        for one, content in contents.items():
            (whole / one).write_bytes(content)
        problem = wrong_rows(whole, data.least)
        if problem:
            raise _by_hand(name, data, folder, names, problem)
        whole.rename(folder)
    return folder


def downloaded(data: PublicData) -> dict[str, bytes]:
    """The files of a data set, those with a known checksum verified."""
    contents: dict[str, bytes] = {}
    for name, address in data.files.items():
        content = _get(address)
        known = data.sha256.get(address)
        if known and hashlib.sha256(content).hexdigest() != known:
            raise ValueError(f"{name} is not the known file: its SHA-256 is another")
        contents |= _members(content, data.members) if data.members else {name: content}
    return contents


def wrong_rows(folder: Path, least: int) -> str:
    """What is wrong with the exchanges of a folder, read to the end; empty where nothing is."""
    bad: list[str] = []
    count = sum(1 for _ in load_exchanges(folder, on_bad_row=lambda row: bad.append(str(row))))
    if count < least:
        return f"what came holds {count} exchanges, not {least} or more"
    return f"{len(bad)} rows that came are damaged" if len(bad) > count // 20 else ""


def _get(address: str) -> bytes:
    try:
        with urllib.request.urlopen(address, timeout=SECONDS) as answer:
            content: bytes = answer.read(LARGEST + 1)
    except urllib.error.HTTPError as error:
        error.close()
        raise ValueError(f"the server answered {error.code}") from error
    if len(content) > LARGEST:
        raise ValueError("what came is larger than the data can be")
    return content


def _members(archive: bytes, members: Mapping[str, str]) -> dict[str, bytes]:
    """The named members of an archive; the others are not looked at."""
    found = {}
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
        for member, name in members.items():
            file = tar.extractfile(member)
            if file is None:
                raise ValueError(f"the archive holds no file {member}")
            found[name] = file.read(LARGEST)
    return found


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.URLError):
        return f"the network does not answer: {error.reason}"
    return (str(error) or type(error).__name__).splitlines()[0]


def _by_hand(name: str, data: PublicData, folder: Path, names: list[str], reason: str) -> UserError:
    """Where to get the files by hand, and where to put them."""
    return UserError(
        f"{name} could not be fetched ({reason}). Get it from {data.home} and put "
        f"{', '.join(names)} into {folder}."
    )
