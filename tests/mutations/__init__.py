"""Damaged and hostile files by the thousand: nothing crashes, hangs, runs, is lost or is believed.

    python -m tests.mutations [--data 20000] [--others 2000] [--seed 0]

Each subject makes something whole once, damages copies of it by a seed, and uses them as a command
would. A case ends well in one of three ways: as if nothing had happened, with the last good state,
or with a `UserError` of one line. The test suite runs some hundreds of cases; the numbers above are
what a release is checked with.
"""
