"""Ways to damage a file, or a folder of files, drawn from a seed."""

import os
import random
import shutil
from collections.abc import Sequence
from pathlib import Path

HOSTILE = (
    b"9" * 5000,
    b"[" * 20_000,
    b'{"a":' * 2000,
    b'"\\ud83d"',
    b"\\udc00",
    b"1e999",
    b"-Infinity",
    b"NaN",
    b"null",
    b"true",
    b"{}",
    b"[]",
    b'"',
    b"\x00" * 30,
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\r",
    b"\n",
    b",",
    b"\t",
    b"../../../etc/passwd",
    b'"auto_map": {"AutoConfig": "evil.Config", "AutoModelForCausalLM": "evil.Model"},',
    b"1000000000",
)


def mutated(content: bytes, chance: random.Random) -> bytes:
    """The content with one to three changes."""
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        at = chance.randrange(len(content) + 1)
        end = min(len(content), at + chance.choice((1, 4, 30, 200)))
        match chance.randrange(8):
            case 0:
                flipped = bytearray(content)
                if at < len(content):
                    flipped[at] ^= 1 << chance.randrange(8)
                content = bytes(flipped)
            case 1:
                content = content[:at] + bytes(end - at) + content[end:]
            case 2:
                content = content[:at]
            case 3:
                content = content[:at] + content[end:]
            case 4:
                content = content[:end] + content[at:end] + content[end:]
            case 5:
                content = content[:at] + chance.randbytes(end - at) + content[end:]
            case _:
                content = content[:at] + chance.choice(HOSTILE) + content[end:]
    return content


EVIL = "import pathlib\npathlib.Path({mark!r}).touch()\nclass Config: pass\nclass Model: pass\n"


def damage_folder(folder: Path, chance: random.Random, mark: Path) -> None:
    """Change one thing below a folder. Code that is put there would leave the mark."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    path = chance.choice(files)
    match chance.randrange(12):
        case 0:
            path.unlink()
        case 1:
            other = chance.choice(files)
            path.write_bytes(other.read_bytes())
        case 2:
            path.unlink()
            path.symlink_to(chance.choice(("/etc/hostname", "/nowhere", path.name)))
        case 3:
            path.unlink()
            path.mkdir()
        case 4:
            (path.parent / chance.choice(_STRAYS)).write_text(EVIL.format(mark=str(mark)))
        case 5:
            path.unlink()
            os.mkfifo(path)
        case _:
            path.write_bytes(mutated(path.read_bytes(), chance))


_STRAYS: Sequence[str] = (
    "evil.py",
    "step_abc",
    "step_00000099",
    "modules.json",
    "adapter_config.json",
    "model.safetensors.index.json",
    ".hidden",
    "pytorch_model.bin",
)


def copied(source: Path, target: Path) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    return Path(shutil.copytree(source, target))
