"""Signing keys in a real database: shared by servers, and of no use to whoever writes rows."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gpucredits.core.bounds import HOUR_US
from gpucredits.service.access import signing
from gpucredits.service.access.refusals import Refusals, RefusedAct, record
from gpucredits.service.access.signing import SigningKeys, SigningKeysFull, seal
from gpucredits.service.reads.verify import verify
from gpucredits.service.write.acts import Act
from gpucredits.store.access import audit
from gpucredits.store.clock import read_clock
from gpucredits.wire.access.lease_token import thumbprint
from support.scenes.scene import Scene, play

SECRET, OTHER = b"s" * 32, b"o" * 32
STAFF = Act(org_id=0, actor="key_0_1", request_id="r")


def test_servers_that_share_a_secret_share_the_keys(database: str) -> None:
    """The second server signs with the key that the first made, and both publish the same."""

    async def act(stage: Scene) -> None:
        now = await read_clock(stage.pool)
        one, two = SigningKeys(stage.pool, SECRET), SigningKeys(stage.pool, SECRET)
        first = await one.signer(now)
        assert (await two.signer(now)).row == first.row
        made, is_replay = await two.rotate(STAFF, signs_in_us=HOUR_US)
        assert not is_replay
        listed = await one.listed(await read_clock(stage.pool))
        assert [(row.key_id, state) for row, state in listed] == [
            (made.key_id, "next"),
            (first.row.key_id, "signing"),
        ]
        assert [each.kid for each in (await two.published()).keys] == [
            first.row.key_id,
            made.key_id,
        ]
        assert (await verify(stage.pool)).findings == ()

    play(database, act)


def test_a_server_with_another_secret_has_keys_of_its_own(database: str) -> None:
    """It neither signs with the others' keys nor publishes them, and takes none of them away."""

    async def act(stage: Scene) -> None:
        now = await read_clock(stage.pool)
        one, two = SigningKeys(stage.pool, SECRET), SigningKeys(stage.pool, OTHER)
        first, second = await one.signer(now), await two.signer(now)
        assert first.row.key_id != second.row.key_id
        assert [each.kid for each in (await two.published()).keys] == [second.row.key_id]
        states = [state for _, state in await one.listed(now + HOUR_US)]
        assert states == ["sealed", "signing"]

    play(database, act)


def test_a_row_that_a_superuser_wrote_signs_and_publishes_nothing(database: str) -> None:
    """The secret is not in the database: whoever writes rows there cannot seal one."""

    async def act(stage: Scene) -> None:
        now = await read_clock(stage.pool)
        keys = SigningKeys(stage.pool, SECRET)
        ours = await keys.signer(now)
        evil = Ed25519PrivateKey.generate()
        public = evil.public_key().public_bytes_raw()
        await stage.pool.execute(
            "INSERT INTO signing_keys (key_id, public_key, sealed, created_at, signs_from)"
            " VALUES ($1, $2, $3, $4, $4)",
            thumbprint(public),
            public,
            seal(OTHER, evil, signs_from=now),
            now,
        )
        fresh = SigningKeys(stage.pool, SECRET)
        assert (await fresh.signer(now)).row == ours.row
        assert set(await fresh.public(now)) == {ours.row.key_id}
        found = (await verify(stage.pool)).findings
        assert [each.rule for each in found] == ["signing_key_acts"]
        await stage.pool.execute("DELETE FROM signing_keys WHERE key_id = $1", thumbprint(public))

    play(database, act)


def test_keys_are_bounded_in_number(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who rotates for ever is told to stop; a revoked key makes room for another."""
    monkeypatch.setattr(signing, "KEYS_MAX", 2)

    async def act(stage: Scene) -> None:
        keys = SigningKeys(stage.pool, SECRET)
        for _ in range(2):
            await keys.rotate(STAFF, signs_in_us=0)
        with pytest.raises(SigningKeysFull, match="2 signing keys are published"):
            await keys.rotate(STAFF, signs_in_us=0)
        [(first, _), *_] = reversed(await keys.listed(await read_clock(stage.pool)))
        await keys.revoke(STAFF, first.key_id)
        await keys.rotate(STAFF, signs_in_us=0)

    play(database, act)


def test_refusals_become_rows_of_a_sound_chain(database: str) -> None:
    """One row for a thousand refusals; the log is as it should be afterwards."""

    async def act(stage: Scene) -> None:
        refusals = Refusals()
        kind = RefusedAct(action="tls.refuse", reason="no", actor="system:tls", resource="10.0.0.1")
        for _ in range(1_000):
            refusals.add(kind, now=0.0)
        for now in (0.0, 1.0, 2.0):
            await record(stage.pool, refusals, now=now)
        async with stage.pool.acquire() as db:
            which = audit.AuditFilter(action="tls.refuse")
            [row] = await audit.page(db, which, before=2**62, limit=10)
        assert row.new == {"reason": "no", "count": 1_000}
        assert (await verify(stage.pool)).findings == ()

    play(database, act)
