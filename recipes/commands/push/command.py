"""`rewriting push`: send a policy, an identifier or a reward model to the hub, with its card."""

from pathlib import Path
from typing import Annotated

import typer

from recipes.shared.flags.dialect import examples
from rewriting.errors import UserError

EPILOG = examples(
    "rewriting push runs/partner/policy my-org/kind-editor --dry-run",
    "rewriting push runs/partner/policy my-org/kind-editor --license apache-2.0",
    "rewriting push runs/identifier/model my-org/empathy-reader --dry-run",
)


def push(
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="Folder of a recipe's result, with its model card."),
    ],
    name: Annotated[
        str, typer.Argument(metavar="ORG/NAME", help="Name of the repository on the hub.")
    ],
    licence: Annotated[
        str | None,
        typer.Option(
            "--license",
            help="Licence that the model card names, such as apache-2.0. The training data may "
            "forbid some.",
        ),
    ] = None,
    public: Annotated[
        bool, typer.Option("--public", help="Make a new repository public instead of private.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be sent; no network is used.")
    ] = False,
) -> None:
    """Send a trained policy, identifier or reward model to the hub, with its card.

    Weights (safetensors) and settings (JSON) are sent; the card gets the head that the hub reads.
    Others then write ORG/NAME where a folder can be named, such as --policy ORG/NAME.
    """
    from recipes.commands.push.card import local_models, name_of, with_head
    from recipes.commands.push.kinds import CARD, read_folder
    from rewriting.runtime.models import hub

    if not hub.HUB_ID.fullmatch(name):
        raise UserError(f"{name!r} is no name on the hub: it is ORG/NAME, such as my-org/agent.")
    folder = folder.expanduser()
    kind, described = read_folder(folder)
    sent, left = hub.files_to_send(folder)
    head, card = with_head((folder / CARD).read_text("utf-8"), kind, described, licence)
    show(folder, name, sent, left, head)
    for model in local_models(folder, described):
        typer.echo(f"warning: it is built on {model}, which others cannot load by that name.")
    if "\nlicense:" not in head:
        typer.echo("warning: the card names no licence; --license says which one it has.")
    if dry_run:
        typer.echo("Nothing was sent (--dry-run).")
        return
    message = f"Add the {name_of(kind, described)} and its card"
    address = hub.send_folder(name, folder, sent, card, private=not public, message=message)
    typer.echo(f"sent to {address}")
    typer.echo(f"used by others: {kind.use.replace('NAME', name)}")


def show(folder: Path, name: str, sent: list[Path], left: list[Path], head: str) -> None:
    """The files with their sizes, those that stay, and the head of the card."""
    sizes = {path: (folder / path).stat().st_size for path in sent}
    typer.echo(f"{folder} → {name}: {len(sent)} files, {sum(sizes.values()) / 1e6:,.1f} MB")
    for path, size in sizes.items():
        typer.echo(f"  {size:>13,} bytes  {path.as_posix()}")
    if left:
        typer.echo(f"  not sent: {', '.join(path.as_posix() for path in left)}")
    typer.echo(f"The head of the card:\n{head}", nl=False)
