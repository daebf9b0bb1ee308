"""`python -m rewriting`, and what the command `rewriting` calls.

An entry point, not part of the domain: the one place in this package that looks upwards, and only
after it has seen that the packages there are ours.
"""

import sys

from rewriting.distribution import check_packages
from rewriting.errors import UserError


def main() -> None:
    """Run the command, unless another distribution has taken one of our package names."""
    try:
        check_packages()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    from recipes.cli import main as run

    run()


if __name__ == "__main__":
    main()
