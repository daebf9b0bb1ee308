"""Policies by name, in one explicit dictionary, or by the folder or hub id of a trained one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from rewriting import UserError
from rewriting.loop import Policy
from rewriting.runtime.files.json_files import read_json
from rewriting.runtime.files.policy_files import FILE


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
    folder = trained_folder(name)
    return folder is not None and policy_kind(folder) not in ("generator", "rewriter")


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
    if name in POLICIES:
        return POLICIES[name]()
    if folder := trained_folder(name):
        return _folder(folder, "" if Path(name).expanduser().is_dir() else name)
    raise UserError(
        f"there is no policy {name!r}. Known policies: {', '.join(POLICIES)}; "
        "or the folder or hub id of a trained one."
    )


def trained_folder(name: str) -> Path | None:
    """Where the files of a trained policy are: in the package, here, or brought from the hub now.

    None where the name is none of a trained policy. What is on the hub and cannot be had is a
    UserError.
    """
    if name in POLICIES:
        return TRAINED.get(name)
    folder = Path(name).expanduser()
    if name and folder.is_dir():
        return folder
    from rewriting.runtime.models.hub import hub_folder, is_hub_id

    return hub_folder(name, FILE) if is_hub_id(name) else None


def policy_digest(name: str) -> str:
    """What the files of a trained policy are, whatever it is called; empty for one without files.

    A folder that is trained again keeps its name: a job that goes on has to know. The hub's library
    notes in a hidden folder when it looked: that says nothing of the policy.
    """
    from rewriting.runtime.files.disk import sha256_of

    folder = trained_folder(name)
    if folder is None:
        return ""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    whole = hashlib.sha256()
    for path in files:
        if path.relative_to(folder).parts[0] == ".cache":
            continue
        whole.update(f"{path.relative_to(folder).as_posix()}\0{sha256_of(path)}\n".encode())
    return whole.hexdigest()


def policy_folder(name: str) -> Path:
    """The folder of a trained policy, by path, hub id or the name of a shipped one."""
    folder = trained_folder(name)
    if folder is None:
        raise UserError(
            f"there is no trained policy {name!r}. Name a folder that `train.py partner`, "
            f"`emprl` or `grpo` wrote, a hub id, or one of: {', '.join(TRAINED)}."
        )
    return folder
