"""`rewriting ab serve`, `links`, `revoke` and `backup`: a study while people vote."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recipes.shared.extras import extra_needed
from recipes.shared.flags.dialect import examples
from recipes.shared.flags.options import BehindProxy, Host, Port
from rewriting.errors import UserError
from rewriting.web.hosts import base_url, host_name, listen

if TYPE_CHECKING:
    from rewriting.ab.study.store import Store
    from rewriting.ab.study.study import Study

StudyFolder = Annotated[Path, typer.Argument(metavar="STUDY_DIR", help="Folder of the study.")]
SERVE = examples(
    "rewriting ab serve study",
    "rewriting ab serve study --host 0.0.0.0 --port 80",
    "rewriting ab serve study --behind-proxy --allow-host study.example.org",
)
LINKS = examples(
    "rewriting ab links study --base-url https://study.example.org",
    "rewriting ab links study --renew 3",
    "rewriting ab links study --add 2",
)
REVOKE = examples(
    "rewriting ab revoke study 3 5",
)
BACKUP = examples(
    "rewriting ab backup study --output study-monday",
)


def serve(
    study: StudyFolder,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    return_after: Annotated[
        float,
        typer.Option(
            min=0.01,
            help="Hours without a sign of a rater after which their open pairs return to the pool.",
        ),
    ] = 48.0,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            help="Host name that this server is reached by, such as study.example.org; may be "
            "repeated. Addresses, localhost and this machine's own name need none."
        ),
    ] = None,
    behind_proxy: BehindProxy = False,
) -> None:
    """Serve the rating pages until interrupted (Ctrl-C), and an admin page with its own link.

    Raters who have no link yet get one at the first start; their links are printed once, and only
    their hashes are kept.
    """
    import signal
    import sys

    with extra_needed("ab"):  # starlette, uvicorn
        from rewriting.ab.server import server as site
    from rewriting.ab.server.tokens import new_token
    from rewriting.ab.study.store import Store
    from rewriting.ab.study.study import load_study

    hosts = [host_name(name) for name in allow_host or []]
    plan = load_study(study)
    admin_token = new_token()
    listener = listen(host, port)
    base = base_url(host, listener)
    with Store(study) as store:
        show_links(new_links(plan, store), base)
    print(f"{plan.title}: {base}")
    print(f"admin page: {base}/admin/{admin_token}", flush=True)
    server = site.RatingServer(
        study,
        admin_token=admin_token,
        return_after=timedelta(hours=return_after),
        hosts={*hosts, host},
    )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # after uvicorn has finished with it
    site.serve(server, listener, behind_proxy=behind_proxy)


def links(
    study: StudyFolder,
    base_url: Annotated[
        str, typer.Option(help="Address that the links begin with.")
    ] = "http://127.0.0.1:8000",
    renew: Annotated[
        list[int] | None,
        typer.Option(help="Give this rater a new link and end the old one; may be repeated."),
    ] = None,
    add: Annotated[
        int, typer.Option(min=0, help="Number of raters to add; they take what others left behind.")
    ] = 0,
) -> None:
    """Print links for raters who have none. A link is shown once: only its hash is kept."""
    from rewriting.ab.study.store import Store
    from rewriting.ab.study.study import load_study

    plan = load_study(study)
    with Store(study) as store, store.transaction():
        known = {*plan.raters, *store.linked_raters()}
        check_raters(renew or [], known)
        for rater in renew or []:
            store.revoke(rater)
        more = range(max(known) + 1, max(known) + 1 + add)
        made = new_links(plan, store, [*(renew or []), *more])
    show_links(made, base_url.rstrip("/"))
    if not made:
        print("every rater has a link. --renew N makes a new one, --add N adds raters.")


def revoke(
    study: StudyFolder,
    rater: Annotated[list[int], typer.Argument(help="Numbers of the raters whose links end.")],
) -> None:
    """End raters' links at once. Their votes stay; their open pairs return to the pool."""
    from rewriting.ab.study.store import Store
    from rewriting.ab.study.study import load_study

    plan = load_study(study)
    with Store(study) as store:
        check_raters(rater, {*plan.raters, *store.linked_raters()})
        for number in rater:
            ended = store.revoke(number)
            print(f"rater {number}: {'link revoked' if ended else 'had no valid link'}")


def backup(
    study: StudyFolder,
    output: Annotated[Path, typer.Option(help="Folder for the copy, which is a complete study.")],
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an older copy of the same study.")
    ] = False,
) -> None:
    """Copy a study with all votes, also while it is being served."""
    import shutil

    from rewriting.ab.study.store import Store
    from rewriting.ab.study.study import STUDY_FILE, VOTES_FILE, load_study, saved_checksum
    from rewriting.runtime.files.disk import disk_errors, fsync_file, fsync_folder

    load_study(study)
    if output.exists() and not overwrite:
        raise UserError(f"{output} exists. Pass --overwrite to replace it.")
    if output.resolve() == study.resolve():
        raise UserError(f"{output} is the study itself: give another --output.")
    there = saved_checksum(output)
    if there != saved_checksum(study) and (there is not None or (output / VOTES_FILE).exists()):
        raise UserError(f"{output} holds another study: give another --output.")
    with disk_errors(output), Store(study) as store:
        output.mkdir(parents=True, exist_ok=True)
        # First the study: a copy that is cut short is still known as a copy of it.
        shutil.copyfile(study / STUDY_FILE, output / f".{STUDY_FILE}.new")
        (output / f".{STUDY_FILE}.new").replace(output / STUDY_FILE)
        fresh = output / f".{VOTES_FILE}.new"
        fresh.unlink(missing_ok=True)
        votes = store.backup(fresh)
        fsync_file(fresh)
        for leftover in ("-wal", "-shm"):  # of an older copy: they would be read into the new one
            (output / f"{VOTES_FILE}{leftover}").unlink(missing_ok=True)
        fresh.replace(output / VOTES_FILE)
        fsync_folder(output)
    print(f"{output}: {votes:,} votes, integrity checked")


def new_links(plan: Study, store: Store, raters: Sequence[int] = ()) -> dict[int, str]:
    """Rater → token, for these and for planned raters who never had one."""
    from rewriting.ab.server.tokens import new_token, token_hash

    linked = store.linked_raters()
    made = {rater: new_token() for rater in plan.raters if rater not in linked}
    made |= {rater: new_token() for rater in raters}
    with store.transaction():
        for rater, token in made.items():
            store.add_token(token_hash(token), rater)
    return made


def show_links(made: Mapping[int, str], base: str) -> None:
    if made:
        print("personal links, shown this once; send each rater one:")
    for rater, token in sorted(made.items()):
        print(f"rater {rater}: {base}/r/{token}")


def check_raters(raters: Sequence[int], known: Collection[int]) -> None:
    for rater in raters:
        if rater not in known:
            raise UserError(
                f"there is no rater {rater}. Raters: {', '.join(map(str, sorted(known)))}."
            )
