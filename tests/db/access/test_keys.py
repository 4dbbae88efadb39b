"""API keys in the store, and the short memory of those that were checked."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpucredits.service.access import permissions
from gpucredits.service.access.admin_keys import ensure_admin_key, read_token
from gpucredits.service.access.key_acts import NewKey, create_key, revoke_key
from gpucredits.service.access.permissions import (
    Keyring,
    NoKey,
    Principal,
)
from gpucredits.service.write.acts import Act
from gpucredits.store.clock import read_clock
from support.scenes.admins import first_admin
from support.scenes.scene import Scene, play


async def admin_key(stage: Scene, lasts_us: int) -> NewKey:
    """The only key for the whole system, which ends by itself."""
    expires_at = await read_clock(stage.pool) + lasts_us
    maker = await first_admin(stage.pool)
    wanted: dict[str, Any] = {"role": "admin", "scope": "", "name": "", "expires_at": expires_at}
    act = Act(org_id=0, actor="tester")
    made = await create_key(stage.pool, act, maker=maker, **wanted)
    await revoke_key(stage.pool, act, Keyring(stage.pool), key_id=maker.key_id, scope="")
    return made


def test_a_key_is_not_remembered_for_longer_than_it_lasts(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long checked keys are remembered."""
    monkeypatch.setattr(permissions, "MEMORY_S", 3_600.0)
    clock = SimpleNamespace(moved_s=0.0)
    clock.monotonic = lambda: time.monotonic() + clock.moved_s
    monkeypatch.setattr(permissions, "time", clock)

    async def act(stage: Scene) -> None:
        made = await admin_key(stage, 600_000_000)
        assert made.secret is not None
        keyring = Keyring(stage.pool)
        assert isinstance(await keyring.authenticate(made.secret), Principal)
        await stage.advance(601)
        assert isinstance(await keyring.authenticate(made.secret), Principal)  # remembered
        clock.moved_s = 601.0
        assert await keyring.authenticate(made.secret) is NoKey.EXPIRED

    play(database, act)


def test_a_server_whose_last_admin_key_has_expired_makes_another(
    database: str, tmp_path: Path
) -> None:
    """While one lasts there is no need to."""

    async def act(stage: Scene) -> None:
        path = tmp_path / "admin.key"
        await admin_key(stage, 60_000_000)
        assert not await ensure_admin_key(stage.pool, path)
        await stage.advance(61)
        assert await ensure_admin_key(stage.pool, path)
        token = read_token(path)
        assert token is not None
        assert isinstance(await Keyring(stage.pool).authenticate(token), Principal)

    play(database, act)
