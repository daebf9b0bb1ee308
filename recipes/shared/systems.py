"""Systems that are compared: a policy by name or folder, the originals, or a file of outputs.

A system is named as it is given, or by a label before an equals sign:

    original,generic,prompted,trained=runs/partner/policy,elsewhere=outputs.jsonl

POLICY@N is the best of N samples of a policy by the reward: best4=runs/partner/policy@4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rewriting import Edit, Exchange, Rewrite, UserError
from rewriting.data.rows import READERS, Row, raise_bad_row, read_rows
from rewriting.data.split import fingerprint

if TYPE_CHECKING:
    from rewriting.loop import Policy

Output = tuple[str, tuple[Edit, ...]]  # a rewritten response and the edits that led to it
ORIGINAL = "original"
CHUNK = 64  # rows between two signs of progress


def parse_systems(text: str) -> dict[str, str]:
    """Name → what it stands for, in order. A name may stand once."""
    systems: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, source = part.partition("=")
        name, source = (name.strip(), source.strip()) if equals else (part, part)
        if not name or not source:
            raise UserError(f"system {part!r}: give a name, a path, or label=path.")
        if name in systems:
            raise UserError(f"two systems are called {name!r}: give one a label, label={source}.")
        systems[name] = source
    if not systems:
        raise UserError("name at least one system, such as --systems original,generic.")
    return systems


def check_system(source: str) -> None:
    """Say at once that there is no such system, not after another one has worked for an hour."""
    from policies.named import check_policy_name, trained_folder

    source, _ = best_of(source)
    path = Path(source).expanduser()
    if path.suffix.lower() in READERS:
        if not path.is_file():
            raise UserError(f"{source}: there is no such file of outputs.")
    elif source != ORIGINAL and (folder := trained_folder(source)):
        check_folder(folder)
    elif source != ORIGINAL:
        check_policy_name(source)


def check_folder(folder: Path) -> None:
    """Read the settings of a policy's folder, which know what is wrong with it."""
    from policies.choosing import settings as choosing_settings
    from policies.editing import settings as edit_settings
    from policies.generating import settings as generator_settings
    from policies.named import policy_kind

    kind = policy_kind(folder)
    if kind == choosing_settings.KIND:
        choosing_settings.read_settings(folder)
    elif kind == generator_settings.KIND:
        generator_settings.read_settings(folder)
    elif kind in ("rewriter", "editor"):  # the module of the chat models takes seconds to import
        from policies.chat.rewriter import read_rewriter

        read_rewriter(folder, kind)
    else:
        edit_settings.read_settings(folder)


def best_of(source: str) -> tuple[str, int]:
    """Of POLICY@N the policy and N; of anything else itself and 1."""
    policy, at, count = source.rpartition("@")
    if not at or not count.isdecimal() or Path(source).expanduser().exists():
        return source, 1
    if policy == ORIGINAL or Path(policy).suffix.lower() in READERS:
        raise UserError(
            f"system {source!r}: the best of {count} needs a policy that samples, not a file "
            "or the original replies."
        )
    if not policy or not int(count):
        raise UserError(f"system {source!r}: write POLICY@N, such as bank@4.")
    return policy, int(count)


def loaded(source: str, ranked_by: str = "") -> Policy:
    """The policy, or the best of its samples by rewards, given as YAML; without any, exactly as
    `rewriting rewrite --num-candidates` picks it."""
    from policies.named import load_bare_policy
    from recipes.shared.rewriter import Rewriter

    name, count = best_of(source)
    if count == 1:
        return load_bare_policy(name)
    return Rewriter(name, count, rewards=ranked_by or None).load()


def rewrites_of(
    source: str, exchanges: Sequence[Exchange], *, seed: int, ranked_by: str = ""
) -> list[Rewrite]:
    """What a system makes of the exchanges."""
    if source == ORIGINAL:
        return [Rewrite(exchange, exchange.response_post) for exchange in exchanges]
    if Path(source).suffix.lower() in READERS:
        return read_outputs(Path(source).expanduser(), exchanges)
    from rewriting.runtime.progress import progress_bar

    policy = loaded(source, ranked_by)
    rewrites: list[Rewrite] = []
    with progress_bar(f"rewriting with {source}", len(exchanges)) as advance:
        for start in range(0, len(exchanges), CHUNK):
            chunk = exchanges[start : start + CHUNK]
            rewrites += policy.rewrite(chunk, seed=seed)
            advance(len(chunk))
    return rewrites


def read_outputs(path: Path, exchanges: Sequence[Exchange]) -> list[Rewrite]:
    """The rewrites of a file: `rewritten_response`, and which exchange each belongs to.

    An output belongs to the exchange with the same two posts, or, where the file lacks one of
    them, with the same id. Every exchange needs one; outputs of other exchanges are left alone.
    """
    by_posts: dict[bytes, Output] = {}
    by_id: dict[str, Output] = {}
    for row in read_rows(path, raise_bad_row):
        text = row.cells.get("rewritten_response")
        if not isinstance(text, str):
            raise UserError(
                f"{path}, line {row.line}: no rewritten_response; a file of outputs has it beside "
                "seeker_post and response_post, or beside id."
            )
        output = text, _edits(path, row)
        posts = _posts(row.cells)
        if posts is not None:
            by_posts.setdefault(posts, output)
        elif row.cells.get("id") not in (None, ""):
            by_id.setdefault(str(row.cells["id"]), output)
    found = [
        by_posts.get(fingerprint(one.seeker_post, one.response_post), by_id.get(one.id))
        for one in exchanges
    ]
    missing = [one.id for one, output in zip(exchanges, found, strict=True) if output is None]
    if missing:
        raise UserError(
            f"{path} lacks a rewrite of {len(missing)} of {len(exchanges)} exchanges, the first "
            f"being {missing[0]!r}. Was it made from other data, or with a --limit?"
        )
    return [Rewrite(one, *(output or ())) for one, output in zip(exchanges, found, strict=True)]


def _edits(path: Path, row: Row) -> tuple[Edit, ...]:
    """The edits of a line of `rewriting rewrite`; other files have none."""
    try:
        return tuple(Edit(**edit) for edit in row.cells.get("edits") or ())
    except (TypeError, ValueError) as error:
        raise UserError(f"{path}, line {row.line}: no edits of a rewrite ({error}).") from error


def _posts(cells: Mapping[str, Any]) -> bytes | None:
    posts = [cells.get("seeker_post"), cells.get("response_post")]
    if not all(isinstance(post, str) for post in posts):
        return None
    return fingerprint(*map(str, posts))
