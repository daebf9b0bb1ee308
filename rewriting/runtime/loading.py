"""Loading a function of the user's by `path.py:function` or `package.module:function`."""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from rewriting.errors import UserError


def load_function(place: str) -> Callable[..., Any]:
    """The function, class or callable object that a place names.

    A file is run once for all the functions taken from it. Its folder, or for a module the current
    one, can be imported from while it is.
    """
    where, _, name = place.rpartition(":")
    if not where or not name:
        raise UserError(
            f"{place!r} is no place of a function: path.py:function or module:function."
        )
    module = _file(Path(where).expanduser()) if where.endswith(".py") else _module(where)
    if not hasattr(module, name):
        public = [key for key, value in vars(module).items() if callable(value) and key[0] != "_"]
        raise UserError(f"{where} has no function {name!r}. {suggestion(name, public)}")
    function = getattr(module, name)
    if not callable(function):
        raise UserError(f"{name!r} in {where} is {function!r}, which cannot be called.")
    loaded: Callable[..., Any] = function
    return loaded


def _file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UserError(f"{path}: there is no such file (looked in {Path.cwd()}).")
    path = path.resolve()
    digest = hashlib.sha256(str(path).encode() + path.read_bytes()).hexdigest()[:12]
    name = f"{path.stem}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None  # the name ends in .py
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look their module up by name
    try:
        with _importable(path.parent), _explained(str(path)):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _module(name: str) -> ModuleType:
    with _importable(Path.cwd()), _explained(name):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise
            raise UserError(
                f"there is no module {error.name!r}. For a file, write path/to/file.py:function."
            ) from error


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """A folder at the end of the search path: an installed command does not look in any."""
    if str(folder) in sys.path:
        yield
        return
    sys.path.append(str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


@contextmanager
def _explained(place: str) -> Iterator[None]:
    """What goes wrong in the user's own code, with its line."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        line = (
            getattr(error, "lineno", None) or traceback.extract_tb(error.__traceback__)[-1].lineno
        )
        raise UserError(
            f"{place} cannot be loaded: {type(error).__name__}: {error} (line {line})."
        ) from error


def suggestion(name: str, known: list[str]) -> str:
    """What a misspelt name may have meant, and what there is."""
    return f"{did_you_mean(name, known)}There is: {', '.join(known) or 'none'}."


def did_you_mean(name: str, known: Iterable[str], before: str = "") -> str:
    """A guess at what a misspelt name stands for, as a question; empty where there is none."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"Did you mean {before}{close[0]}? " if close else ""
