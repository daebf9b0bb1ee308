"""From files to exchanges: every format the papers and their users have, streamed."""

from rewriting.data.dataset import from_dataset, to_dataset
from rewriting.data.load import load_exchanges
from rewriting.data.rows import BadRow, raise_bad_row
from rewriting.data.split import Split, split_of, without_duplicates

__all__ = [
    "BadRow",
    "Split",
    "from_dataset",
    "load_exchanges",
    "raise_bad_row",
    "split_of",
    "to_dataset",
    "without_duplicates",
]
