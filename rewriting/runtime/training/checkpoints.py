"""Checkpoints that are whole or absent, and training loops that stop and resume exactly.

A trainer uses it in three lines:

    with Checkpoints(folder, every=50) as checkpoints:
        for step in checkpoints.steps(total, model=model, optimizer=optimizer):
            train_one(step)

`steps` restores the newest whole checkpoint, yields the steps that are left, saves every so often
and at the end, and on SIGTERM or Ctrl-C finishes the step, saves and exits. A part is anything
with `state_dict` and `load_state_dict`. Generator states are not saved: the randomness of a step
follows from its number (seeds.py). All processes ask the parts for their state, so that weights
which are shared out among them can be gathered; the first one writes.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Any, Protocol, Self

from rewriting.errors import UserError
from rewriting.runtime.files.disk import disk_errors
from rewriting.runtime.files.folders import damage, only_writer, publish, write_manifest
from rewriting.runtime.files.json_files import parse_json, read_text
from rewriting.runtime.files.trees import pack, unpack
from rewriting.runtime.processes import across_processes

logger = logging.getLogger(__name__)
STATE = "state.json"
NAME = re.compile(r"step_\d{8,}")


class Part(Protocol):
    """What can be saved: a module, an optimizer, a controller, a running mean."""

    def state_dict(self) -> Any: ...
    def load_state_dict(self, state: Any) -> Any: ...


class Checkpoints:
    """The checkpoints of one run, in one folder.

    every: save after so many steps. keep: how many of the newest stay, two at the least, so that a
    damaged one always has one before it. settings: plain values that must be the same when a run
    goes on. accelerator: with several processes, the first one writes, and all stop together.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        every: int = 100,
        keep: int = 2,
        settings: Mapping[str, Any] | None = None,
        accelerator: Any = None,
    ) -> None:
        if every < 1 or keep < 2:
            raise ValueError(f"every must be at least 1 and keep at least 2, not {every}, {keep}")
        self.folder = Path(folder)
        self.every = every
        self.keep = keep
        self.settings = json.loads(json.dumps(dict(settings or {})))
        self.accelerator = accelerator
        self._received: signal.Signals | None = None
        self._previous: dict[signal.Signals, Any] = {}
        self._lock = ExitStack()

    def __enter__(self) -> Self:
        self._take_lock()
        for number in (signal.SIGTERM, signal.SIGINT):
            self._previous[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *error: Any) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous = {}
        self._lock.close()

    def _take_lock(self) -> None:
        """Refuse a folder that another run writes to, in all processes of this one."""
        refusal = ""
        try:
            if self.accelerator is None or self.accelerator.is_main_process:
                self._lock.enter_context(only_writer(self.folder))
                self._remove_leftovers()
        except UserError as error:
            refusal = str(error)
        if self.accelerator is not None:
            refusal = "".join(across_processes(refusal))
        if refusal:
            raise UserError(refusal)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self._received is signal.SIGINT and number == signal.SIGINT:
            raise KeyboardInterrupt  # asked twice: the user does not want to wait
        self._received = signal.Signals(number)
        logger.warning("%s: finishing this step, then saving", self._received.name)

    def steps(self, total: int, **parts: Part) -> Iterator[int]:
        """Yield the numbers of the steps that are left, saving the parts on the way."""
        for step in range(self.restore(**parts), total):
            yield step
            done = step + 1
            stopping = self._anyone_stops()
            if stopping or done % self.every == 0 or done == total:
                self.save(done, **parts)
            if stopping:
                logger.warning("stopped after step %d; the same command goes on from there", done)
                raise SystemExit(130 if self._received is signal.SIGINT else 0)

    def _anyone_stops(self) -> bool:
        """Whether a signal came, here or in another process: all must leave at the same step."""
        stopping = self._received is not None
        if self.accelerator is None or self.accelerator.num_processes == 1:
            return stopping
        import torch

        flag = torch.tensor([float(stopping)], device=self.accelerator.device)
        return bool(self.accelerator.reduce(flag, reduction="sum").item() > 0)

    def save(self, step: int, **parts: Part) -> Path:
        """Write the parts as they are after `step` steps; visible only when whole."""
        target = self.folder / f"step_{step:08d}"
        # Every process asks: the weights of a sharded model are gathered from all of them.
        states = {name: part.state_dict() for name, part in parts.items()}
        if self.accelerator is None or self.accelerator.is_main_process:
            with disk_errors(target):
                self._write(target, step, states)
                self._prune(target)
        if self.accelerator is not None:
            self.accelerator.wait_for_everyone()
        return target

    def _write(self, target: Path, step: int, states: Mapping[str, Any]) -> None:
        from safetensors.torch import save_file

        self.folder.mkdir(parents=True, exist_ok=True)
        self._remove_leftovers()
        temporary = self.folder / f".tmp-{target.name}-{os.getpid()}"
        content = temporary / "content"
        content.mkdir(parents=True)
        trees = {}
        for name, state in states.items():
            tensors, trees[name] = pack(state)
            save_file(tensors, content / f"{name}.safetensors")
        text = json.dumps({"step": step, "settings": self.settings, "parts": trees})
        (content / STATE).write_text(text, encoding="utf-8")
        write_manifest(content, {"step": step})
        publish(content, target, temporary)
        shutil.rmtree(temporary)

    def _remove_leftovers(self) -> None:
        """Remove what killed saves and removals have left: only one process writes here."""
        with disk_errors(self.folder):
            for leftover in filter(Path.is_dir, self.folder.glob(".tmp-*")):
                shutil.rmtree(leftover)

    def _prune(self, newest: Path) -> None:
        """Remove all but the newest. What is newer than this save was passed over as damaged."""
        known = [path for path in self.all() if path <= newest and path.is_dir()]
        for old in known[: -self.keep]:
            doomed = self.folder / f".tmp-{old.name}-{os.getpid()}"
            old.rename(doomed)  # a kill in the middle of removing leaves no half checkpoint
            shutil.rmtree(doomed)

    def all(self) -> list[Path]:
        """Every checkpoint, oldest first, damaged or not. Other files are none of ours."""
        found = (path for path in self.folder.glob("step_*") if NAME.fullmatch(path.name))
        return sorted(found, key=lambda path: int(path.name.removeprefix("step_")))

    def latest(self) -> Path | None:
        """The newest whole checkpoint. Damaged ones are reported and passed over."""
        for candidate in reversed(self.all()):
            problem = damage(candidate, {}, checksums=True) or state_problem(candidate)
            if problem is None:
                return candidate
            logger.warning(
                "checkpoint %s is damaged (%s): trying the one before", candidate, problem
            )
        if self.all():
            raise UserError(
                f"every checkpoint in {self.folder} is damaged. Restore the folder from a backup, "
                "or remove it to start afresh."
            )
        return None

    def restore(self, **parts: Part) -> int:
        """Load the newest whole checkpoint into the parts; how many steps it is worth."""
        folder = self.latest()
        if folder is None:
            return 0
        state = read_state(folder)
        check_settings(folder, state["settings"], self.settings)
        trees = load_checkpoint(folder)
        for name, part in parts.items():
            if name not in trees:
                raise UserError(f"{folder} holds no {name!r}: another kind of run has written it.")
            try:
                part.load_state_dict(trees[name])
            except (KeyError, RuntimeError, TypeError, ValueError) as error:
                if _is_of_the_machine(error):
                    raise
                reason = (str(error).strip() or type(error).__name__).splitlines()[0]
                raise UserError(
                    f"the {name} in {folder} does not fit this run ({reason}). "
                    "Use another output folder."
                ) from error
        return int(state["step"])


def _is_of_the_machine(error: Exception) -> bool:
    """Whether memory or another process failed, which says nothing about the checkpoint."""
    import torch
    import torch.distributed as distributed

    lost = (distributed.DistError,) if distributed.is_available() else ()
    return isinstance(error, (torch.OutOfMemoryError, *lost))


def read_state(folder: Path) -> dict[str, Any]:
    """state.json: the step, the settings and the parts. A ValueError where it is not that."""
    state = parse_json(read_text(folder / STATE))
    kinds = {"step": int, "settings": dict, "parts": dict}
    for name, kind in kinds.items():
        if not isinstance(state, dict) or not isinstance(state.get(name), kind):
            raise ValueError(f"{STATE} has no {name}")  # noqa: TRY004 (of a file, not of a caller)
    if f"step_{state['step']:08d}" != folder.name:
        raise ValueError(f"{STATE} is of step {state['step']}")
    return dict(state)


def state_problem(folder: Path) -> str | None:
    """Why a checkpoint whose checksums are right cannot be read all the same; None where it can."""
    from safetensors import SafetensorError, safe_open

    try:
        for name, tree in read_state(folder)["parts"].items():
            with safe_open(folder / f"{name}.safetensors", framework="pt") as file:
                unpack(tree, dict.fromkeys(file.keys()))
    except (OSError, ValueError, KeyError, TypeError, RecursionError, SafetensorError) as error:
        return str(error).splitlines()[0] if str(error) else type(error).__name__
    return None


def check_settings(folder: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to go on from a run that had other settings; the message names them."""
    changed = [
        f"{name} was {before.get(name)!r} and is now {now.get(name)!r}"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
    ]
    if changed:
        raise UserError(
            f"cannot go on from {folder}: {'; '.join(changed)}. "
            "Use the former settings or another output folder."
        )


def load_checkpoint(folder: Path) -> dict[str, Any]:
    """The states in a checkpoint, by part. Reads safetensors and JSON, nothing else."""
    from safetensors.torch import load_file

    state = read_state(folder)
    return {
        name: unpack(tree, load_file(folder / f"{name}.safetensors"))
        for name, tree in state["parts"].items()
    }
