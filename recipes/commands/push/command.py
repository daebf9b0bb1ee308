"""`rewriting push`: send a trained policy to the hub, with its card."""

from pathlib import Path
from typing import Annotated

import typer

from recipes.shared.flags.dialect import examples
from rewriting.errors import UserError

EPILOG = examples(
    "rewriting push runs/partner/policy my-org/kind-editor --dry-run",
    "rewriting push runs/partner/policy my-org/kind-editor --license apache-2.0",
)


def push(
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="Folder of a trained policy, with its model card."),
    ],
    name: Annotated[
        str, typer.Argument(metavar="ORG/NAME", help="Name of the repository on the hub.")
    ],
    licence: Annotated[
        str | None,
        typer.Option(
            "--license",
            help="Licence that the model card names, such as apache-2.0. The data that the policy "
            "was trained on may forbid some.",
        ),
    ] = None,
    public: Annotated[
        bool, typer.Option("--public", help="Make a new repository public instead of private.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be sent; no network is used.")
    ] = False,
) -> None:
    """Send a trained policy to the hub: weights (safetensors), settings (JSON) and the card.

    The card gets the head that the hub reads. Others then name the policy: --policy ORG/NAME.
    """
    from recipes.commands.push.card import CARD, local_model, read_description, with_head
    from rewriting.runtime.files.policy_files import check_weights
    from rewriting.runtime.models import hub

    if not hub.HUB_ID.fullmatch(name):
        raise UserError(f"{name!r} is no name on the hub: it is ORG/NAME, such as my-org/agent.")
    folder = folder.expanduser()
    described = read_description(folder)
    check_weights(folder, described)
    sent, left = hub.files_to_send(folder)
    head, card = with_head((folder / CARD).read_text("utf-8"), described, licence)
    show(folder, name, sent, left, head)
    if model := local_model(folder, described):
        typer.echo(f"warning: it is built on {model}, which others cannot load by that name.")
    if "\nlicense:" not in head:
        typer.echo("warning: the card names no licence; --license says which one it has.")
    if dry_run:
        typer.echo("Nothing was sent (--dry-run).")
        return
    kind = str(described["kind"]).replace("_", " ")
    address = hub.send_folder(
        name, folder, sent, card, private=not public, message=f"Add an {kind} and its card"
    )
    typer.echo(f"sent to {address}")


def show(folder: Path, name: str, sent: list[Path], left: list[Path], head: str) -> None:
    """The files with their sizes, those that stay, and the head of the card."""
    sizes = {path: (folder / path).stat().st_size for path in sent}
    typer.echo(f"{folder} → {name}: {len(sent)} files, {sum(sizes.values()) / 1e6:,.1f} MB")
    for path, size in sizes.items():
        typer.echo(f"  {size:>13,} bytes  {path.as_posix()}")
    if left:
        typer.echo(f"  not sent: {', '.join(path.as_posix() for path in left)}")
    typer.echo(f"The head of the card:\n{head}", nl=False)
