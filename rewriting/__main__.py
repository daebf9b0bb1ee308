"""`python -m rewriting`: the same as the command `rewriting`.

An entry point, not part of the domain: the one place in this package that looks upwards.
"""

from recipes.cli import main

if __name__ == "__main__":
    main()
