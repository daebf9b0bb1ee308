"""A browser for the tests of pages, and a loud word where none was found."""

import os
import shutil

import pytest

NO_CHROMIUM = (
    "NO CHROMIUM FOUND: the pages were NOT tested in a browser. "
    "apt-get install chromium, or name one in REWRITING_CHROMIUM."
)


def find_chromium() -> str | None:
    named = os.environ.get("REWRITING_CHROMIUM")
    return named or shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a Chromium. Without one the browser's tests are skipped, loudly."""
    path = find_chromium()
    if path is None:
        pytest.skip(NO_CHROMIUM)
    return path


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if find_chromium() is None:
        terminalreporter.write_sep("!", "no browser", red=True, bold=True)
        terminalreporter.write_line(NO_CHROMIUM, red=True, bold=True)
