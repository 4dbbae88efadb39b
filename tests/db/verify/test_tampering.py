"""Whoever grants power or moves a bound past the server is found, with the rule that names it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpucredits.service.reads.verify import verify
from support.damage.damage import found_by
from support.damage.powers import use_every_power
from support.damage.tampering import TAMPERINGS
from support.engines.postgres import TestServer
from support.scenes.scene import Scene, play

TRIED = [(rule, tampering) for rule, every in TAMPERINGS.items() for tampering in every]
TRIED_MIN = 40


@pytest.fixture(scope="module")
def books(postgres: TestServer) -> Iterator[str]:
    """Sound books on which every power was used; every tampering is taken back."""
    with postgres.database() as dsn:
        play(dsn, use_every_power)
        yield dsn


def test_untampered_books_are_clean(books: str) -> None:
    """Control: every rule that names a tampering finds nothing without one."""

    async def act(stage: Scene) -> None:
        verification = await verify(stage.pool)
        assert verification.findings == ()
        assert set(TAMPERINGS) <= set(verification.rules)

    assert len(TRIED) >= TRIED_MIN
    play(books, act)


@pytest.mark.parametrize(("rule", "tampering"), TRIED)
def test_a_tampering_is_seen(books: str, rule: str, tampering: str) -> None:
    """A superuser with the triggers off changes rows, and the rule names them."""
    found = found_by(books, rule, tampering)
    assert found
    assert all("org_id" in row for row in found)
