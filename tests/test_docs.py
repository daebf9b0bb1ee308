"""The Python code of the documentation runs as it stands on the page."""

import re
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from rewriting.runtime.models import named as models
from tests.light import light_models
from tests.rewards.tiny_trl import tiny_model

DOCS = Path(__file__).parent.parent / "docs"
BLOCK = re.compile(r"^```python[ ]*(?P<file>\S*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)


def run_page(page: Path, folder: Path) -> int:
    """Run a page's blocks marked ```python one after the other, in one namespace.

    A block that names a file is written to it instead, in the current folder. Returns how many
    blocks there were; a failing one is shown with its line on the page.
    """
    text = page.read_text(encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": "page"}
    blocks = list(BLOCK.finditer(text))
    for block in blocks:
        if block["file"]:
            (folder / block["file"]).write_text(block["code"], encoding="utf-8")
            continue
        lines_before = text.count("\n", 0, block.start("code"))
        exec(compile("\n" * lines_before + block["code"], str(page), "exec"), namespace)
    return len(blocks)


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A reader's folder, with a tiny model under every name, so that no page needs a download."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(models, "load_causal", lambda name: tiny_model())
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if (tmp_path / f"{name}.py").exists():
            del sys.modules[name]


def test_custom_rewards(reader: Path) -> None:
    assert run_page(DOCS / "custom-rewards.md", reader) == 13


def test_python(reader: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    light_models(monkeypatch)
    assert run_page(DOCS / "python.md", reader) == 9


@pytest.mark.integration
def test_python_with_its_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_page(DOCS / "python.md", tmp_path) == 9
    out = capsys.readouterr().out
    assert "partner: 2 steps" in out
    assert (tmp_path / "runs" / "mine" / "policy" / "policy.json").is_file()


def test_safety(reader: Path) -> None:
    assert run_page(DOCS / "safety.md", reader) == 4


def test_judge(reader: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rewriting.runtime.language_models.backbone import Backbone

    tiny = Backbone(*tiny_model(), name="tiny")
    monkeypatch.setattr(Backbone, "shared", lambda name: tiny)
    assert run_page(DOCS / "judge.md", reader) == 2


def test_every_option_of_the_judge_is_on_the_page() -> None:
    from inspect import signature

    from rewards.terms.judge import JudgeTerm

    options = first_column((DOCS / "judge.md").read_text(encoding="utf-8"), "option")
    known = [name for name in signature(JudgeTerm).parameters if name != "name"]
    assert options == [f"`{name}`" for name in known]


def test_every_built_in_reward_is_on_the_page() -> None:
    from rewards.named import BUILT_INS

    page = (DOCS / "custom-rewards.md").read_text(encoding="utf-8")
    section = page.split("The built-in names")[1].split("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \| .*\|$", section, re.M) == list(BUILT_INS)


def test_every_option_of_a_term_is_on_the_page() -> None:
    from rewards.classifier_options import ClassifierOptions
    from rewards.named import BUILT_INS, COMMON_OPTIONS

    page = (DOCS / "custom-rewards.md").read_text(encoding="utf-8")
    assert first_column(page, "option") == [f"`{f.name}`" for f in fields(ClassifierOptions)]
    for option in COMMON_OPTIONS:
        assert f"**{option}**" in page, option
    for option in BUILT_INS["contrast"].own_options:
        assert option == "name" or f"- `{option}` (" in page, option


def first_column(page: str, header: str) -> list[str]:
    """What the rows of the table under a header begin with."""
    rows = page.split(f"| {header} |")[1].split("\n\n")[0].splitlines()[2:]
    return [row.split("|")[1].strip() for row in rows]


def test_every_short_name_is_on_the_page_with_its_sizes() -> None:
    page = (DOCS / "models.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(.+?)` \| .* \| ([\d,]+) MB \| ([\d,]+) MB \| (.+) \|$", page, re.M)
    assert rows == [
        (name, f"{model.size / 1e6:,.0f}", f"{model.disk_size / 1e6:,.0f}", model.license)
        for name, model in models.SHORT_NAMES.items()
    ]


def test_every_warning_of_a_training_is_explained() -> None:
    from rewriting.report.collapse import EDITS

    page = (DOCS / "partner.md").read_text(encoding="utf-8")
    assert len(first_column(page, "warning")) == len(EDITS.remedies)


def test_every_setting_of_partner_is_in_a_group() -> None:
    from recipes.train.partner.recipe import Config

    page = (DOCS / "partner.md").read_text(encoding="utf-8")
    groups = page.split("| about | fields |")[1].split("\n\n")[0]
    named = re.findall(r"`(\w+)`", groups)
    assert sorted(named) == sorted(field.name for field in fields(Config))


def test_every_setting_of_bank_alone_is_on_its_page() -> None:
    from recipes.train.bank import Config
    from recipes.train.partner.recipe import Config as Partner

    own = {field.name for field in fields(Config)} - {field.name for field in fields(Partner)}
    page = (DOCS / "bank.md").read_text(encoding="utf-8")
    assert {name.strip("`") for name in first_column(page, "field")} == own


def test_every_setting_of_emprl_is_in_a_group() -> None:
    from recipes.train.emprl.recipe import Config

    page = (DOCS / "emprl.md").read_text(encoding="utf-8")
    groups = page.split("| about | fields |")[1].split("\n\n")[0]
    assert set(re.findall(r"`(\w+)`", groups)) == {field.name for field in fields(Config)}


def test_a_failing_block_is_named_by_its_line(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Title\n\n```python\nx = 1\nassert x == 2\n```\n")
    with pytest.raises(AssertionError) as caught:
        run_page(page, tmp_path)
    assert caught.traceback[-1].lineno + 1 == 5


def test_readme(reader: Path) -> None:
    """Its reward is one, under the name and in the mapping that the command line gets."""
    from rewards import build_rewards

    page = DOCS.parent / "README.md"
    assert run_page(page, reader) == 1
    (mapping,) = re.findall(r"train\.py partner --rewards '(.+)'$", page.read_text("utf-8"), re.M)
    assert "my_rewards.py:shorter: 0.1" in mapping
    rewards = build_rewards({"my_rewards.py:shorter": 0.1})
    columns = {"completions": ["Oh no."], "seeker_post": ["I failed."]}
    assert rewards(response_post=["Study."], **columns) == [0.0]
    assert rewards(response_post=["Study harder."], **columns) == [pytest.approx(0.7)]


def test_every_test_of_the_fault_tables_is_there() -> None:
    page = (DOCS / "reliability.md").read_text(encoding="utf-8")
    tables = [block.splitlines() for block in page.split("\n\n") if block.startswith("| fault |")]
    rows = [line.strip("| ").split(" | ") for _, _, *lines in tables for line in lines]
    assert {len(row) for row in rows} == {4}
    named = [row[-1].strip("`") for row in rows]
    files = (DOCS.parent / "tests").rglob("test_*.py")
    known = {name for file in files for name in re.findall(r"def (test_\w+)", file.read_text())}
    assert len(named) > 30
    assert [name for name in named if name not in known] == []


def test_every_page_is_named_in_the_readme() -> None:
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in DOCS.glob("*.md") if f"docs/{page.name}" not in readme] == []
    assert "(SECURITY.md)" in readme
