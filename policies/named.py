"""Policies by name, in one explicit dictionary, or by the folder of a trained one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from rewriting import UserError
from rewriting.loop import Policy
from rewriting.runtime.files.json_files import read_json
from rewriting.runtime.files.policy_files import FILE
from rewriting.runtime.loading import did_you_mean


def _generic() -> Policy:
    from policies.baselines.generic import GenericPolicy

    return GenericPolicy()


def _prompted() -> Policy:
    from policies.baselines.prompted import PromptedPolicy

    return PromptedPolicy()


def _generated() -> Policy:
    from policies.baselines.generated import GeneratedPolicy

    return GeneratedPolicy()


def _bank() -> Policy:
    from policies.baselines.bank import BankPolicy

    return BankPolicy.load()


def _partner() -> Policy:
    return _folder(policy_folder("partner"), "partner")


def _partner_start() -> Policy:
    return _folder(policy_folder("partner-start"), "partner-start")


def _emprl() -> Policy:
    return _folder(policy_folder("emprl"), "emprl")


def _emprl_sft() -> Policy:
    return _folder(policy_folder("emprl-sft"), "emprl-sft")


def _folder(folder: Path, name: str = "") -> Policy:
    """The policy in a folder, of whatever kind its policy.json says; an edit policy unless told."""
    kind = policy_kind(folder)
    if kind == "generator":
        from policies.generating.generator import Generator

        return Generator.load(folder, name=name)
    if kind == "rewriter":
        from policies.baselines.prompted import PromptedPolicy

        return PromptedPolicy.load(folder, name=name)
    if kind == "editor":
        from policies.chat.editor import ChatEditor

        return ChatEditor.load(folder, name=name)
    from policies.editing.agent import EditAgent

    return EditAgent.load(folder, name=name)


def policy_kind(folder: Path) -> str:
    """What policy.json says; an empty text where there is none, or none that can be read."""
    try:
        return str(read_json(folder / FILE)["kind"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def default_candidates(name: str) -> int:
    """How many rewrites of a reply are worth ranking: as many as the bank has near sentences, four
    of a policy that edits replies, one of any other."""
    if name == "bank":
        return 12
    return 4 if edits_replies(name) else 1


def edits_replies(name: str) -> bool:
    """Whether a policy, by name or folder, edits replies by sentences; nothing is loaded."""
    folder = TRAINED.get(name, Path(name).expanduser())
    known = name in TRAINED or (name not in POLICIES and folder.is_dir())
    return known and policy_kind(folder) not in ("generator", "rewriter")


SHIPPED = Path(__file__).parent / "shipped"
TRAINED: dict[str, Path] = {
    "partner": SHIPPED / "partner",
    "partner-start": SHIPPED / "partner_start",
    "emprl": SHIPPED / "emprl",
    "emprl-sft": SHIPPED / "emprl_sft",
}
"""Trained policies that come with the package: name → folder."""

POLICIES: dict[str, Callable[[], Policy]] = {
    "partner": _partner,
    "partner-start": _partner_start,
    "emprl": _emprl,
    "emprl-sft": _emprl_sft,
    "prompted": _prompted,
    "generated": _generated,
    "generic": _generic,
    "bank": _bank,
}


def load_policy(name: str) -> Policy:
    """The policy of that name or in that folder; heavy ones load their models now."""
    check_name(name)
    return POLICIES[name]() if name in POLICIES else _folder(Path(name).expanduser())


def check_name(name: str) -> None:
    """Refuse a name that is neither a known policy nor a folder; nothing is loaded."""
    if name in POLICIES or (name and Path(name).expanduser().is_dir()):
        return
    raise UserError(
        f"there is no policy {name!r}. {did_you_mean(name, POLICIES)}"
        f"Known policies: {', '.join(POLICIES)}; or the folder of a trained one."
    )


def policy_digest(name: str) -> str:
    """What the files of a trained policy are, whatever it is called; empty for one without files.

    A folder that is trained again keeps its name: a job that goes on has to know.
    """
    from rewriting.runtime.files.disk import sha256_of

    folder = TRAINED.get(name, Path(name).expanduser())
    if not folder.is_dir() or (name in POLICIES and name not in TRAINED):
        return ""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    whole = hashlib.sha256()
    for path in files:
        whole.update(f"{path.relative_to(folder).as_posix()}\0{sha256_of(path)}\n".encode())
    return whole.hexdigest()


def policy_folder(name: str) -> Path:
    """The folder of a trained policy, by path or by the name of a shipped one."""
    folder = TRAINED.get(name, Path(name).expanduser())
    if not folder.is_dir():
        raise UserError(
            f"there is no trained policy {name!r}. {did_you_mean(name, TRAINED)}"
            "Name a folder that `train.py partner`, `emprl` or `grpo` wrote, or one of: "
            f"{', '.join(TRAINED)}."
        )
    return folder
