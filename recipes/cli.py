"""The command `rewriting`: its subcommands stand in recipes/, a file each."""

from __future__ import annotations

import logging
import sys

import typer

from recipes.commands import data, feedback, insights, models, rewrite, score, serve
from recipes.commands.ab import app as ab
from rewriting.errors import UserError

app = typer.Typer(
    help="Rewrite supportive replies to be more empathic, measure them, and look after the data "
    "and models behind that.",
    epilog='Try: rewriting rewrite --seeker "I failed the exam again." --response "Study harder."',
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="rich",
)
app.command("rewrite", epilog=rewrite.EPILOG)(rewrite.rewrite)
app.command("score", epilog=score.EPILOG)(score.score)
app.command("feedback", epilog=feedback.EPILOG)(feedback.feedback)
app.command("serve", epilog=serve.EPILOG)(serve.serve)
app.command("insights", epilog=insights.EPILOG)(insights.insights)
app.add_typer(ab.app, name="ab")
app.add_typer(data.app, name="data")
app.add_typer(models.app, name="models")


def main(arguments: list[str] | None = None) -> None:
    """Run the command. A user's mistake is one line on standard error and exit code 1."""
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    try:
        app(arguments, prog_name="rewriting")
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(1) from None
