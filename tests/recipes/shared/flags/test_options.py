"""Commands whose options are the fields of a dataclass."""

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from recipes.shared.flags.options import Limit, takes

GIVEN: list[object] = []


@dataclass(frozen=True)
class Options:
    name: Annotated[str, typer.Option(help="Who it is.")]
    limit: Limit = None
    loud: Annotated[bool, typer.Option("--loud", help="Whether to shout.")] = False


@takes(Options)
def greet(options: Options) -> None:
    """Say hello."""
    GIVEN.append(options)


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (["--name", "Ada"], Options("Ada")),
        (["--name", "Ada", "--limit", "2", "--loud"], Options("Ada", 2, True)),
    ],
)
def test_a_field_is_an_option(arguments: list[str], options: Options) -> None:
    app = typer.Typer()
    app.command()(greet)
    GIVEN.clear()
    assert CliRunner().invoke(app, arguments).exit_code == 0
    assert [options] == GIVEN


def test_a_field_without_a_default_is_required_and_help_is_the_functions() -> None:
    app = typer.Typer()
    app.command()(greet)
    assert CliRunner().invoke(app, []).exit_code == 2
    assert CliRunner().invoke(app, ["--name", "Ada", "--limit", "0"]).exit_code == 2
    told = CliRunner().invoke(app, ["--help"]).output
    assert "Say hello." in told
    assert "Who it is." in told
