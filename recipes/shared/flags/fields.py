"""A recipe's dataclass, filled from a YAML file and flags; flags win.

Every mistake is one line that names the flag, or the file and its line. Hyphens and underscores are
the same in a flag, and a flag without a value is a yes: `--overwrite`, `--overwrite true`. Nothing
heavy is imported, so that a typo is found at once.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final, NoReturn, get_args, get_type_hints

from recipes.shared.flags.configs import config_file, recipe_configs
from rewriting.errors import UserError
from rewriting.runtime.loading import did_you_mean

TRUTHS: Final = {
    **dict.fromkeys(("true", "yes", "y", "t", "on", "1"), True),
    **dict.fromkeys(("false", "no", "n", "f", "off", "0"), False),
}
KINDS: Final = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
CONFIG: Final = "config"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}. {self.prog} --help lists the fields.")


def parse(module: Any, program: str, arguments: Sequence[str]) -> Any:
    """The recipe's `Config`, with what its YAML file and its flags say."""
    names = [one.name for one in fields(module.Config)]
    arguments = with_underscores(arguments, [CONFIG, *names])
    given, rest = _parser(module, program).parse_known_args(arguments)
    if rest:
        raise UserError(_unknown_flag(rest[0], names, program))
    values = vars(given)
    file = values.pop(CONFIG)
    return module.Config(**(_from_file(file, module.Config) if file else {}) | values)


def kinds_of(config: type) -> dict[str, tuple[type, bool]]:
    """Field → its type, and whether it may be left empty."""
    found = {}
    for name, hint in get_type_hints(config).items():
        options = get_args(hint)
        kind = next((one for one in options if one is not type(None)), hint)
        found[name] = (kind, type(None) in options)
    return found


def with_underscores(arguments: Sequence[str], names: Sequence[str]) -> list[str]:
    """The arguments with known flags as their fields are written: --save-every is --save_every."""
    known = {f"--{name}" for name in names} | {f"--no_{name}" for name in names}
    written = []
    for argument in arguments:
        flag, equals, value = argument.partition("=")
        plain = flag.replace("-", "_").replace("__", "--", 1)
        written.append(f"{plain}{equals}{value}" if plain in known else argument)
    return written


def as_typed(text: str, program: str) -> str:
    """A docstring as `rewriting train` shows it: an installed wheel has no scripts."""
    if not program.startswith("rewriting"):
        return text
    text = re.sub(
        r"accelerate launch (train|evaluate)\.py", r"accelerate launch -m rewriting \1", text
    )
    text = re.sub(r"(?:python )?\b(train|evaluate)\.py", r"rewriting \1", text)
    return re.sub(r"--config configs/(\w+)\.yaml", r"--config \1", text)


def _parser(module: Any, program: str) -> _Parser:
    parser = _Parser(
        prog=program,
        description=as_typed(module.__doc__ or "", program),
        formatter_class=argparse.RawDescriptionHelpFormatter,  # examples as they stand
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
    )
    parser.add_argument(
        f"--{CONFIG}",
        default=None,
        metavar="FILE.yaml|NAME",
        help="A file with fields, as YAML, or the name of one in the package: rewriting configs.",
    )
    kinds = kinds_of(module.Config)
    for one in fields(module.Config):
        kind, _ = kinds[one.name]
        told = f"{one.metadata.get('help', '')} (default: {one.default})".replace("%", "%%")
        yes: dict[str, Any] = {"nargs": "?", "const": True} if kind is bool else {}
        parser.add_argument(
            f"--{one.name}", type=_typed(one.name, kind), help=told, metavar=one.name.upper(), **yes
        )
        if kind is bool and one.default:
            parser.add_argument(
                f"--no_{one.name}",
                dest=one.name,
                action="store_const",
                const=False,
                help=f"The same as --{one.name} false.",
            )
    return parser


def _typed(name: str, kind: type) -> Callable[[str], Any]:
    """What argparse turns a text into a value with."""

    def typed(text: str) -> Any:
        try:
            return value_of(text, kind)
        except ValueError as error:
            raise UserError(f"--{name} is {KINDS[kind]}, not {text!r}.") from error

    return typed


def value_of(value: Any, kind: type) -> Any:
    """A value of a flag, or of YAML, as the type of its field; a ValueError where it is none."""
    if kind is bool:
        if isinstance(value, bool):
            return value
        if str(value).lower() not in TRUTHS:
            raise ValueError("neither true nor false")
        return TRUTHS[str(value).lower()]
    if value is None or isinstance(value, bool | list):
        raise ValueError("of another type")
    if kind is str:
        return value if isinstance(value, Mapping) else str(value)
    if isinstance(value, Mapping) or (kind is int and isinstance(value, float)):
        raise ValueError("of another type")
    return kind(value)  # YAML 1.1 takes 1e-3 for a text


def _from_file(file: str, config: type) -> dict[str, Any]:
    """The fields of a YAML file, named by its path or as one of the package, typed."""
    import yaml

    from rewriting.runtime.files.yaml_text import read_yaml

    path = config_file(file, recipe_configs())
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"--config {file}: cannot be read ({_first_line(error)}).") from error
    try:
        node, content = yaml.compose(text), read_yaml(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{file}, line {mark.line + 1}" if mark else file
        problem = getattr(error, "problem", None) or _first_line(error)
        raise UserError(f"{where}: not valid YAML ({problem}).") from error
    if not isinstance(content, dict):
        raise UserError(f"{file} is no list of fields, each with its value: `steps: 100`.")
    lines = {key.value: key.start_mark.line + 1 for key, _ in node.value}
    return {
        str(name): _file_value(f"{file}, line {lines.get(str(name), 1)}", str(name), value, config)
        for name, value in content.items()
    }


def _file_value(where: str, name: str, value: Any, config: type) -> Any:
    kinds = kinds_of(config)
    if name not in kinds:
        raise UserError(
            f"{where}: there is no field {name}. {did_you_mean(name, kinds)}Take the line out, or "
            "correct it."
        )
    kind, may_be_empty = kinds[name]
    if value is None and may_be_empty:
        return None
    default = next(one.default for one in fields(config) if one.name == name)
    takes_mapping = not default or str(default).startswith("{")  # such as rewards
    try:
        if isinstance(value, Mapping) and not takes_mapping:
            raise ValueError("a mapping where a text is meant")
        return value_of(value, kind)
    except ValueError as error:
        raise UserError(f"{where}: {name} is {KINDS[kind]}, not {value!r}.") from error


def _unknown_flag(argument: str, names: Sequence[str], program: str) -> str:
    if not argument.startswith("--"):
        return f"{argument!r} belongs to no flag. {program} --help lists the fields."
    flag = argument.partition("=")[0]
    name = flag.removeprefix("--").replace("-", "_")
    guess = did_you_mean(name, [CONFIG, *names], "--")
    return f"there is no field {flag}. {guess}{program} --help lists the fields."


def _first_line(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error)).splitlines()[0]
