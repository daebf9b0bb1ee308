"""`rewriting configs`: where the YAML files are that come with the package."""

from typing import Annotated

import typer

from recipes.shared.flags.dialect import examples

EPILOG = examples(
    "rewriting configs",
    "rewriting configs partner",
    'accelerate launch --config_file "$(rewriting configs launch/gpus)" -m rewriting train partner',
)


def configs(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="Name of the config; without it, all are listed."),
    ] = None,
) -> None:
    """Print the path of a config that comes with the package, or list them all.

    `rewriting train RECIPE --config NAME` takes the name alone. Copy the file to change it.
    """
    from recipes.shared.flags.configs import config_file, launch_configs, recipe_configs

    known = recipe_configs() | launch_configs()
    if name is not None:
        print(config_file(name, known))
        return
    for one, path in known.items():
        print(f"{one}\t{path}")
