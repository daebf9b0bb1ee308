"""The reference pages of the site, made from the code when the site is built.

They need none of the heavy libraries: commands and recipes import those when they run.
"""

from __future__ import annotations

import html
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields
from importlib import import_module
from typing import Any

PYTHON = {
    "rewriting": (
        "Edit",
        "Exchange",
        "Label",
        "Rewrite",
        "Sentences",
        "UserError",
        "apply_edits",
        "split_sentences",
    ),
    "rewriting.data": ("load_exchanges",),
    "rewriting.loop": ("Policy", "EditPolicy", "rewrite_by_edits"),
    "rewards": ("build_rewards", "load_identifier"),
    "rewards.reward_sum": ("RewardSum", "Term"),
    "rewards.models": ("Models",),
    "policies": ("load_policy", "load_bare_policy", "GatedPolicy"),
    "recipes": ("load_rewriter",),
    "recipes.train.partner": ("Config", "run"),
    "recipes.train.emprl": ("Config", "run"),
    "policies.training.reinforce.loop": ("train",),
    "policies.training.ppo.loop": ("train",),
}
"""Module → the names in it that users build on."""


def commands_page() -> str:
    """Every command of `rewriting` with its arguments and options, as `--help` has them."""
    import typer

    from recipes.cli import app

    lines = ["# Commands", "", "What `rewriting COMMAND --help` says.", ""]
    for name, command in _commands(typer.main.get_command(app), "rewriting"):
        lines += [f"## {name}", "", _paragraphs(command.help or ""), ""]
        lines += _table(("option", "default", "meaning"), _options(command))
    return "\n".join(lines)


def _commands(command: Any, name: str) -> list[tuple[str, Any]]:
    inner = getattr(command, "commands", {})
    if not inner:
        return [(name, command)]
    return [one for word, sub in inner.items() for one in _commands(sub, f"{name} {word}")]


def _options(command: Any) -> list[tuple[str, str, str]]:
    rows = []
    for one in command.params:
        if one.name == "help":
            continue
        names = [*one.opts, *one.secondary_opts]
        is_option = one.param_type_name == "option"
        name = ", ".join(f"`{word}`" for word in names) if is_option else f"`{one.name.upper()}`"
        default = "required" if one.required else _value(one.default)
        rows.append((name, default, getattr(one, "help", None) or ""))
    return rows


def settings_page() -> str:
    """Every field of every recipe and table, with default, bounds and meaning."""
    from recipes.entry import EVALUATION, TRAINING

    lines = [
        "# Settings",
        "",
        "Each of these is a flag (`--steps 48`) and a line of the YAML file that `--config` names.",
        "",
    ]
    for program, recipes in (("train.py", TRAINING), ("evaluate.py", EVALUATION)):
        for name, place in recipes.items():
            module = import_module(place)
            lines += [f"## {program} {name}", "", _first_paragraph(module), ""]
            lines += _table(("field", "default", "bounds", "meaning"), _fields(module.Config))
    return "\n".join(lines)


def _fields(config: type) -> list[tuple[str, str, str, str]]:
    rows = []
    for one in fields(config):
        default = one.default_factory() if one.default_factory is not MISSING else one.default
        shown = "required" if default is MISSING else _value(default)
        help_text = one.metadata.get("help", "")
        rows.append((f"`{one.name}`", shown, bounds(one.metadata), help_text))
    return rows


def bounds(metadata: Mapping[str, Any]) -> str:
    """What a value must be, in symbols; nothing where everything goes."""
    symbols = {"least": "≥", "above": ">", "greatest": "≤"}
    given = {name: metadata.get(name) for name in symbols}
    return ", ".join(
        f"{symbols[name]} {value}" for name, value in given.items() if value is not None
    )


def measures_page() -> str:
    """The measures of both tables of `evaluate.py`."""
    from rewriting.measures.responses import RESPONSE_MEASURES
    from rewriting.measures.rewrites import MEASURES, ON_REQUEST

    lines = ["# Measures", ""]
    tables = {"rewrites": MEASURES | ON_REQUEST, "responses": RESPONSE_MEASURES}
    for name, measures in tables.items():
        lines += [f"## evaluate.py {name}", ""]
        rows = [
            (f"`{key}`", one.better or "neither", without_links(one.explanation))
            for key, one in measures.items()
        ]
        lines += _table(("measure", "better", "meaning"), rows)
    return "\n".join(lines)


def without_links(text: str) -> str:
    """The text of Markdown links; where they lead depends on the page that holds them."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)


def rewards_page() -> str:
    """The built-in reward terms, by the docstrings of their classes."""
    from rewards.loading import load_function
    from rewards.named import BUILT_INS

    lines = ["# Rewards", "", "The built-in names, and the options that each takes of its own.", ""]
    for name, built_in in BUILT_INS.items():
        lines += [f"## {name}", "", _docstring(load_function(built_in.place)), ""]
        options = [f"`{one}` ({kind.words})" for one, kind in built_in.options.items()]
        lines += [f"Options: {'; '.join(options)}." if options else "No options of its own.", ""]
    return "\n".join(lines)


def python_page() -> str:
    """The names that users build on, with signature and docstring."""
    lines = ["# Python", "", "What to import, by what it is for.", ""]
    for place, names in PYTHON.items():
        module = import_module(place)
        for name in names:
            thing = getattr(module, name)
            lines += [f"## {place}.{name}", "", "```python", signature(place, name, thing), "```"]
            lines += ["", _docstring(thing), ""]
    return "\n".join(lines)


def signature(place: str, name: str, thing: Any) -> str:
    """The import of a name, and how it is called."""
    lines = [f"from {place} import {name}"]
    if callable(thing) and not (inspect.isclass(thing) and issubclass(thing, BaseException)):
        called = inspect.signature(thing)
        parameters = [str(one) for one in called.parameters.values()]
        if "/" not in str(called) and len(str(called)) > 70:
            parameters = _with_star(called)
            lines += [f"{name}(", *(f"    {one}," for one in parameters), ")"]
        else:
            lines.append(f"{name}{called}")
    return "\n".join(lines)


def _with_star(called: inspect.Signature) -> list[str]:
    """The parameters, with the star that stands before those that must be named."""
    shown: list[str] = []
    for one in called.parameters.values():
        named = one.kind is one.KEYWORD_ONLY
        if named and not any(word.startswith("*") for word in shown):
            shown.append("*")
        shown.append(str(one))
    return shown


PAGES: Mapping[str, Callable[[], str]] = {
    "reference/commands.md": commands_page,
    "reference/settings.md": settings_page,
    "reference/measures.md": measures_page,
    "reference/rewards.md": rewards_page,
    "reference/python.md": python_page,
}
"""Page of the site → the function that writes it."""


def _docstring(thing: Any) -> str:
    return _paragraphs(inspect.getdoc(thing) or "")


def _first_paragraph(module: Any) -> str:
    return _paragraphs((module.__doc__ or "").strip().split("\n\n")[0])


def _paragraphs(text: str) -> str:
    """A docstring as Markdown: indented examples become code, the rest is shown as it stands."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    shown = []
    for one in paragraphs:
        is_code = all(line.startswith("    ") for line in one.splitlines())
        shown.append(one if is_code else html.escape(one, quote=False).replace("*", "\\*"))
    return "\n\n".join(shown)


def _value(value: Any) -> str:
    if value is None or value == "":
        return "–"
    return f"`{value}`"


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    titles = list(header)
    lines = [f"| {' | '.join(titles)} |", f"|{'---|' * len(titles)}"]
    lines += [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows]
    return [*lines, ""] if len(lines) > 2 else []


def _cell(text: str) -> str:
    escaped = " ".join(str(text).split()).replace("|", "\\|")
    return escaped if "`" in escaped else html.escape(escaped, quote=False)
