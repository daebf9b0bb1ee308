"""Whether the four packages are ours: a check that reads and imports nothing."""

import shutil
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from rewriting import UserError, distribution
from rewriting.distribution import PACKAGES, check_packages


def test_our_own_packages_pass() -> None:
    check_packages()


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what matters of the four packages, and Python looking there alone."""
    for name in PACKAGES:
        (tmp_path / name).mkdir()
        shutil.copy(distribution.ROOT / name / "__init__.py", tmp_path / name)
    monkeypatch.setattr(distribution, "ROOT", tmp_path)

    def find(name: str) -> ModuleSpec | None:
        init = tmp_path / name / "__init__.py"
        if init.exists():
            return ModuleSpec(name, None, origin=str(init))
        return ModuleSpec(name, None, is_package=True) if init.parent.exists() else None

    monkeypatch.setattr(distribution, "find_spec", find)
    check_packages()
    return tmp_path


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_that_was_overwritten_is_named_in_one_line(
    installed: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (installed / name / "__init__.py").write_text("raise SystemExit('this is not to be run')")
    owners = {name: ["empathic-rewriting", "other-tools"]}
    monkeypatch.setattr("importlib.metadata.packages_distributions", lambda: owners)
    with pytest.raises(UserError, match=rf"the package '{name}' is not that.*, of other-tools\. "):
        check_packages()


def test_a_package_that_was_removed_or_hidden_is_named(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (installed / "rewards/__init__.py").unlink()  # as uninstalling the other distribution does
    with pytest.raises(UserError, match=r"'rewards' is not that .* finds \["):
        check_packages()
    (installed / "rewards").rmdir()
    with pytest.raises(UserError, match=r"'rewards' is not that .* finds nothing"):
        check_packages()
    monkeypatch.setattr(distribution, "ROOT", installed / "elsewhere")
    with pytest.raises(UserError, match="'rewriting' is not that"):
        check_packages()


def test_the_command_says_so_before_it_imports_them(tmp_path: Path) -> None:
    """Another `policies` stands before ours, as it does in a folder that one works in."""
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies/__init__.py").write_text("raise SystemExit('this is not to be run')")
    code = "import sys; sys.path.insert(0, sys.argv.pop()); import rewriting.__main__ as command; "
    command = [sys.executable, "-c", code + "command.main()", str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, cwd=distribution.ROOT)
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: the package 'policies' is not that of empathic-rewriting")
    assert str(tmp_path) in line
