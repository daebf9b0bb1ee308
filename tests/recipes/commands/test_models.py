"""`rewriting models list` and `fetch`."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from recipes.commands.models import app
from rewriting.errors import UserError
from rewriting.runtime.models import named as models


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    calls: list[tuple[str, bool]] = []

    def fetch(name: str, progress: bool = True, verify: bool = False) -> Path:
        calls.append((name, verify))
        return Path("/cache") / name

    monkeypatch.setattr(models, "fetch", fetch)
    return calls


def test_list_shows_every_name_and_whether_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REWRITING_CACHE", str(tmp_path))
    result = CliRunner().invoke(app, ["list"])
    assert result.exit_code == 0
    for name, model in models.SHORT_NAMES.items():
        sizes, description = [
            line for line in result.output.splitlines() if line.startswith(f" {name} ")
        ]
        assert f" {model.size / 1e6:,.0f} MB " in sizes
        assert " no " in sizes
        assert model.description.split(",")[0] in description
    assert str(tmp_path) in result.output
    assert (
        "without names fetches smollm2-135m, minilm-l6, flan-t5-small, mpnet-base." in result.output
    )


def test_fetch_takes_names_or_what_the_defaults_need(fetched: list[tuple[str, bool]]) -> None:
    result = CliRunner().invoke(app, ["fetch", "minilm-l6", "--verify"])
    assert result.output == "minilm-l6\t/cache/minilm-l6\n"
    assert fetched == [("minilm-l6", True)]
    fetched.clear()
    assert CliRunner().invoke(app, ["fetch"]).exit_code == 0
    assert fetched == [
        ("smollm2-135m", False),
        ("minilm-l6", False),
        ("flan-t5-small", False),
        ("mpnet-base", False),
    ]


def test_an_unknown_name_is_the_users_mistake() -> None:
    result = CliRunner().invoke(app, ["fetch", "gpt9"])
    assert isinstance(result.exception, UserError)


@pytest.mark.parametrize("command", [[], ["list"], ["fetch"]])
def test_help_has_examples(command: list[str]) -> None:
    result = CliRunner().invoke(app, [*command, "--help"])
    assert result.exit_code == 0
    assert not command or "Example" in result.output
