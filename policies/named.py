"""Policies by name, in one explicit dictionary, or by the folder or hub id of a trained one."""

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


def _nearest() -> Policy:
    from policies.baselines.nearest import NearestPolicy

    return NearestPolicy.load()


def _bank() -> Policy:
    return _folder(policy_folder("bank"), "bank")


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
    if kind == "choosing_policy":
        from policies.choosing.agent import ChoosingAgent

        return ChoosingAgent.load(folder, name=name)
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
    """How many rewrites of a reply are worth ranking: many where sentences are taken at random,
    four of a policy that edits replies, one of any other."""
    if name == "nearest":
        return 12
    return 4 if edits_replies(name) else 1


def edits_replies(name: str) -> bool:
    """Whether a policy, by name or folder, edits replies by sentences; nothing is loaded."""
    folder = trained_folder(name)
    return folder is not None and policy_kind(folder) not in ("generator", "rewriter")


def lends(name: str) -> bool:
    """Whether a policy, by name or folder, says sentences that were written for somebody else."""
    folder = trained_folder(name)
    return name == "nearest" or (folder is not None and policy_kind(folder) == "choosing_policy")


SHIPPED = Path(__file__).parent / "shipped"
TRAINED: dict[str, Path] = {
    "bank": SHIPPED / "bank",
    "partner-start": SHIPPED / "partner_start",
    "emprl": SHIPPED / "emprl",
    "emprl-sft": SHIPPED / "emprl_sft",
}
"""Trained policies that come with the package: name → folder."""

POLICIES: dict[str, Callable[[], Policy]] = {
    "partner-start": _partner_start,
    "emprl": _emprl,
    "emprl-sft": _emprl_sft,
    "prompted": _prompted,
    "generated": _generated,
    "generic": _generic,
    "nearest": _nearest,
    "bank": _bank,
}


def load_bare_policy(name: str) -> Policy:
    """The policy of that name, in that folder or of that hub id, without the safety gate: for
    training and evaluation. Heavy ones load their models now. `policies.load_policy` puts the gate
    around."""
    check_policy_name(name)
    if name in POLICIES:
        return POLICIES[name]()
    folder = trained_folder(name)
    assert folder is not None  # check_policy_name has seen it
    return _folder(folder, "" if Path(name).expanduser().is_dir() else name)


def check_policy_name(name: str) -> None:
    """Refuse what is no name, folder or hub id, before any model is loaded."""
    if name not in POLICIES and trained_folder(name) is None:
        raise UserError(
            f"there is no policy {name!r}. {did_you_mean(name, POLICIES)}"
            f"Known policies: {', '.join(POLICIES)}; or the folder or hub id of a trained one."
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
            f"there is no trained policy {name!r}. {did_you_mean(name, TRAINED)}"
            "Name a folder that `train.py partner`, `bank`, `emprl` or `grpo` wrote, a hub id, or "
            f"one of: {', '.join(TRAINED)}."
        )
    return folder
