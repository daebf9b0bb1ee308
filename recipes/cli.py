"""The command `rewriting`: its subcommands stand in recipes/, a file each."""

from __future__ import annotations

import logging
import sys
from typing import Annotated, Any

import typer

from recipes.commands import configs, data, feedback, insights, models, rewrite, score, serve
from recipes.commands.ab import app as ab
from recipes.commands.push import command as push
from recipes.entry import run_evaluation, run_training
from recipes.shared.flags.dialect import SETTINGS, examples, plain_flags
from rewriting import __version__
from rewriting.errors import UserError

TRAIN_EPILOG = examples(
    "rewriting train",
    "rewriting train partner --help",
    "rewriting train partner --config partner --data sample --output runs/partner",
)
EVALUATE_EPILOG = examples(
    "rewriting evaluate rewrites --help",
    "rewriting evaluate rewrites --systems original,generic --data sample:test --json table.json",
)
PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
"""For commands whose words all belong to a recipe, --help among them."""

app = typer.Typer(
    help="Rewrite supportive replies to be more empathic, measure them, and look after the data "
    "and models behind that.",
    epilog=examples(
        'rewriting rewrite --seeker "I failed the exam again." --response "Study harder."'
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="rich",
    context_settings=SETTINGS,
)


def show_version(asked: bool) -> None:
    if asked:
        print(f"rewriting {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass  # the help of the whole command is that of `app`


@app.command("train", epilog=TRAIN_EPILOG, context_settings=PASSED_ON)
def train(context: typer.Context) -> None:
    """Train an agent, a generator or a reward model; without a word, the quick PARTNER run."""
    run_training(context.args, "rewriting train")


@app.command("evaluate", epilog=EVALUATE_EPILOG, context_settings=PASSED_ON)
def evaluate(context: typer.Context) -> None:
    """Measure rewrites, responses, identifiers and rewards: a table each."""
    run_evaluation(context.args, "rewriting evaluate")


app.command("rewrite", epilog=rewrite.EPILOG)(rewrite.rewrite)
app.command("score", epilog=score.EPILOG)(score.score)
app.command("feedback", epilog=feedback.EPILOG)(feedback.feedback)
app.command("serve", epilog=serve.EPILOG)(serve.serve)
app.command("configs", epilog=configs.EPILOG)(configs.configs)
app.command("push", epilog=push.EPILOG)(push.push)
app.command("insights", epilog=insights.EPILOG)(insights.insights)
app.add_typer(ab.app, name="ab")
app.add_typer(data.app, name="data")
app.add_typer(models.app, name="models")


def main(arguments: list[str] | None = None) -> None:
    """Run the command. A user's mistake is one line on standard error: exit code 1, or 2 where the
    command line itself is wrong."""
    arguments = sys.argv[1:] if arguments is None else arguments
    told = logging.INFO if arguments[:1] in (["train"], ["evaluate"]) else logging.WARNING
    logging.basicConfig(format="%(message)s", level=told)
    command = typer.main.get_command(app)
    words = plain_flags(command, arguments)
    try:
        code = command.main(words, prog_name="rewriting", standalone_mode=False)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    except (typer.Abort, KeyboardInterrupt):
        raise SystemExit(130) from None
    except Exception as error:
        if not hasattr(error, "format_message"):  # click's own errors, wherever typer keeps them
            raise
        raise SystemExit(say_usage(error)) from None
    raise SystemExit(code or 0)


def say_usage(error: Any) -> int:
    """What is wrong with the command line, in one line; the help where nothing was asked."""
    message = " ".join(error.format_message().split()).rstrip(".")
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
    else:
        where = context.command_path if context else "rewriting"
        end = "" if message.endswith("?") else "."
        print(f"error: {message}{end} {where} --help explains every flag.", file=sys.stderr)
    return int(error.exit_code)
