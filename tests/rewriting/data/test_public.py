"""Public data from a server of our own: verified, whole or absent, one line where it fails."""

import hashlib
import io
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from rewriting.data import public
from rewriting.errors import UserError

EPITOME = (
    "sp_id,rp_id,seeker_post,response_post,level,rationales\n"
    "1,1,I failed.,How sad!,1,How sad!\n2,2,I am ill.,Rest.,0,\n"
)
DIALOGUE = (
    "conv_id,utterance_idx,context,prompt,utterance,speaker_idx,selfeval,tags\n"
    "hit:0,1,sad,I failed,I failed my exam,1,5,\nhit:0,2,sad,I failed,I am sorry,2,5,\n"
)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


def archive(**files: str) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(f"empatheticdialogues/{name}.csv")
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    return content.getvalue()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that is served, and the data sets that point there, each of one exchange or two."""
    folder = tmp_path / "site"
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_port}"
    epitome = public.PUBLIC["epitome"]
    for name in epitome.files:
        (folder / name).write_text(EPITOME)
    files = {name: f"{base}/{name}" for name in epitome.files}
    monkeypatch.setitem(public.PUBLIC, "epitome", replace(epitome, files=files, least=2))
    content = archive(train=DIALOGUE, valid=DIALOGUE.replace("hit:0", "hit:1"), other="1/0")
    (folder / "dialogues.tar.gz").write_bytes(content)
    address = f"{base}/dialogues.tar.gz"
    dialogues = replace(
        public.PUBLIC["empathetic_dialogues"],
        files={"dialogues.tar.gz": address},
        sha256={address: hashlib.sha256(content).hexdigest()},
        least=2,
    )
    monkeypatch.setitem(public.PUBLIC, "empathetic_dialogues", dialogues)
    yield folder
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("epitome", [f"{m}-reddit.csv" for m in ("emotional-reactions", "explorations")]),
        ("empathetic_dialogues", ["train.csv", "valid.csv"]),
    ],
)
def test_data_is_fetched_once(site: Path, tmp_path: Path, name: str, files: list[str]) -> None:
    folder = public.fetch(name, tmp_path / "data")
    assert folder == tmp_path / "data" / name
    held = {path.name for path in folder.iterdir()}
    assert set(files) <= held
    assert "other.csv" not in held
    assert list((tmp_path / "data").iterdir()) == [folder]
    for file in site.iterdir():
        file.unlink()
    assert public.fetch(name, tmp_path / "data") == folder


def refused(name: str, output: Path) -> str:
    with pytest.raises(UserError) as error:
        public.fetch(name, output)
    assert not list(output.glob("*"))
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_file_with_another_checksum_is_refused(site: Path, tmp_path: Path) -> None:
    (site / "dialogues.tar.gz").write_bytes(archive(train=DIALOGUE, valid=DIALOGUE + "\n"))
    message = refused("empathetic_dialogues", tmp_path / "data")
    assert "its SHA-256 is another" in message
    assert "github.com/facebookresearch/EmpatheticDialogues" in message
    assert f"put train.csv, valid.csv into {tmp_path / 'data/empathetic_dialogues'}" in message


def test_too_few_rows_are_refused(site: Path, tmp_path: Path) -> None:
    for file in site.glob("*-reddit.csv"):
        file.write_text("\n".join(EPITOME.splitlines()[:2]))
    assert "holds 1 exchanges, not 2 or more" in refused("epitome", tmp_path / "data")


def test_a_missing_file_is_one_line(site: Path, tmp_path: Path) -> None:
    (site / "explorations-reddit.csv").unlink()
    assert "the server answered 404" in refused("epitome", tmp_path / "data")


def test_without_a_network_it_says_where_to_get_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = dict.fromkeys(public.PUBLIC["epitome"].files, "http://127.0.0.1:9/x.csv")
    monkeypatch.setitem(public.PUBLIC, "epitome", replace(public.PUBLIC["epitome"], files=nowhere))
    message = refused("epitome", tmp_path / "data")
    assert "the network does not answer" in message
    assert "Get it from https://github.com/behavioral-data/Empathy-Mental-Health" in message


def test_a_name_and_a_half_filled_folder_are_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="Did you mean epitome"):
        public.fetch("epitom", tmp_path)
    (tmp_path / "epitome").mkdir()
    with pytest.raises(UserError, match=r"lacks emotional-reactions-reddit\.csv"):
        public.fetch("epitome", tmp_path)
