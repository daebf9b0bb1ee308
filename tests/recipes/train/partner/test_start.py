"""What the warm start learns from: written edits and undone responses together."""

from collections import Counter

from recipes.train.partner.recipe import Config
from recipes.train.partner.start import supervision
from rewriting.data import load_exchanges


def test_written_edits_and_undone_responses_are_learnt_together() -> None:
    undone = list(load_exchanges("sample:dev"))
    written = list(load_exchanges("sample:rewrites_dev", limit=10))
    config = Config()
    rows = supervision(config, [*undone, *written])
    counts = Counter(row.kind for row in rows)
    edits = [edit["sentence"] for exchange in written for edit in exchange.extra["edits"]]
    assert set(edits) <= {row.sentence for row in rows}
    alone = Counter(row.kind for row in supervision(config, undone))
    assert counts["keep"] == alone["keep"] + len(written)  # each is left alone in the end
    assert counts.total() == alone.total() + len(edits) + len(written)
    assert supervision(config, [*undone, *written]) == rows
