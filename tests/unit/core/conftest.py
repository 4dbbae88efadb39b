"""Every test of a rule runs twice: in one book kept throughout, and in fresh ones."""

from __future__ import annotations

import pytest

from support.books.ledger import CREDIT, Ledger


@pytest.fixture(params=[False, True], ids=["kept book", "fresh books"])
def ledger(request: pytest.FixtureRequest) -> Ledger:
    """An org, a project and a user; an h100 costs 36 credits an hour, an a100 costs 60."""
    ledger = Ledger(fresh=request.param)
    ledger.price("h100", 36 * CREDIT)
    ledger.price("a100", 60 * CREDIT)
    for path in ("acme", "acme/vision", "acme/vision/alice"):
        ledger.open(path)
    return ledger
