"""Background jobs: what they write, that they may run twice, and that they stop."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from gpucredits.core.book import Book, invariant
from gpucredits.core.command import CreateAccount, Issue, Reserve, Sweep
from gpucredits.core.decide import RULES
from gpucredits.core.outcome import Outcome
from gpucredits.jobs.pace import Paced
from gpucredits.jobs.sweeper import Sweeper
from gpucredits.jobs.upkeep import Retention, Sealer, Snapshotter
from gpucredits.service.dispatch import admission
from gpucredits.store.database.errors import Unavailable
from support.scenes.scene import CREDIT, HOUR_US, Scene, play, scene
from support.servers.deaf import WAYS, Deaf
from support.waiting import HANGS_S


def test_sweepers_write_down_what_the_clock_made_true(database: str) -> None:
    """Lapsed leases and ended grants become entries, once, whoever sweeps and however often."""

    async def act(stage: Scene) -> None:
        for number in range(5):
            org = f"org{number}"
            await stage.fund(org, credits_each=0)
            now = (await stage.balance(org)).as_of
            issue = Issue(account=org, amount=100 * CREDIT, expires_at=now + HOUR_US)
            await stage.do(issue, org=org)
            await stage.reserve(org)
        await stage.advance(2 * 3_600)
        async with scene(database) as other:
            sweepers = [Sweeper(server.ledger, orgs_max=2) for server in (stage, other, stage)]

            async def walk(sweeper: Sweeper) -> None:
                while await sweeper.tick():
                    pass

            await asyncio.gather(*(walk(sweeper) for sweeper in sweepers))
            assert sum(sweeper.entries for sweeper in sweepers) == 5 * 2  # a release and an expiry
        assert await stage.pool.fetchval("SELECT count(*) FROM reservations WHERE state = 3") == 5
        assert await stage.pool.fetchval("SELECT sum(remaining) FROM grants") == 0

    play(database, act)


SWEPT = """
SELECT count(*) FROM reservations r JOIN orgs o USING (org_id) WHERE r.state = 3 AND o.path = $1"""


def test_an_org_with_much_to_sweep_leaves_others_their_turn(database: str) -> None:
    """Each org has a bounded part of each round; what is left of it follows without a rest."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", *(f"acme/{number}" for number in range(7)), "beta")
        for number in range(7):
            await stage.reserve(f"acme/{number}")
        await stage.reserve("beta")
        await stage.advance(60)
        sweeper = Sweeper(stage.ledger, orgs_max=1, accounts_max=3)
        goes_on, seen = True, []
        while goes_on:
            goes_on = await sweeper.tick()
            seen.append(tuple([await stage.pool.fetchval(SWEPT, org) for org in ("acme", "beta")]))
        assert seen[:2] == [(3, 0), (3, 1)]
        assert seen[-1] == (7, 1)
        assert sweeper.entries == 8

    play(database, act)


DUE = """
SELECT count(*) FROM accounts WHERE due_at <= (SELECT ledger_now()) - 1000000"""


def test_accounts_of_which_nothing_is_written_are_swept_without_a_rest(database: str) -> None:
    """Leases that were renewed leave their payers due: there is no entry, but something to do."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", *(f"acme/{number}" for number in range(7)))
        leases = [await stage.reserve(f"acme/{number}") for number in range(7)]
        await stage.advance(6)
        for lease in leases:
            await stage.beat(lease, 1, 6_000)
        await stage.advance(6)
        assert await stage.pool.fetchval(DUE) == 7
        sweeper = Sweeper(stage.ledger, accounts_max=3)
        assert [await sweeper.tick() for _ in range(3)] == [True, True, False]
        assert await stage.pool.fetchval(DUE) == 0
        assert sweeper.entries == 0

    play(database, act)


@pytest.mark.parametrize("broken", [1, 3])
def test_accounts_that_cannot_be_swept_are_not_asked_about_without_a_rest(
    database: str, monkeypatch: pytest.MonkeyPatch, broken: int
) -> None:
    """Those beside them are done at once; when only they are left, a rest follows each round."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", *(f"acme/{number}" for number in range(7)))
        for number in range(7):
            await stage.reserve(f"acme/{number}")
            await stage.advance(0.001)
        await stage.advance(60)
        ids = await stage.pool.fetch("SELECT account_id FROM accounts ORDER BY due_at LIMIT 7")
        failing = {row[0] for row in ids[:broken]}
        real = RULES[Sweep]

        def sweep(book: Book, command: Sweep, now: int) -> Outcome:
            invariant(command.account_id not in failing, "the rows do not contradict themselves")
            return real.decide(book, command, now)

        monkeypatch.setitem(RULES, Sweep, replace(real, decide=sweep))
        sweeper = Sweeper(stage.ledger, accounts_max=3)
        went_on = [await sweeper.tick() for _ in range(5)]
        assert went_on == ([True] * 3 + [False] * 2 if broken == 1 else [False] * 5)
        assert await stage.pool.fetchval(SWEPT, "acme") == (6 if broken == 1 else 0)

    play(database, act)


@pytest.mark.parametrize("way", WAYS)
def test_an_org_without_an_answer_leaves_others_their_turn(
    database: str, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Others in the same tick are swept, the next tick goes on, and a rest follows the round."""
    monkeypatch.setattr(admission, "DONE_WITHIN_S", 0.5)

    async def act(stage: Scene) -> None:
        orgs = ("deaf", "acme", "beta")
        await stage.fund(*orgs)
        for org in orgs:
            await stage.reserve(org)
        await stage.advance(60)
        org_id = await stage.ledger.org_id("deaf")
        assert org_id is not None
        sweeper = Sweeper(stage.ledger, orgs_max=2, accounts_max=1)
        with monkeypatch.context() as patch:
            Deaf(stage.ledger, org_id, way, patch)
            for _ in range(4):
                await sweeper.tick()
            assert [await stage.pool.fetchval(SWEPT, org) for org in orgs] == [0, 1, 1]
            assert [await sweeper.tick() for _ in range(2)] == [True, False]

    play(database, act)


def test_sealed_blocks_chain_every_entry(database: str) -> None:
    """Blocks cover all entries without a gap, and two sealers at once seal each block once."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "beta", credits_each=1)
        for _ in range(10):
            await stage.do(Issue(account="acme", amount=CREDIT))
        sealers = [Sealer(stage.pool, entries_max=3, age_us=0) for _ in range(2)]
        for _ in range(6):
            await asyncio.gather(*(sealer.tick() for sealer in sealers))
        rows = await stage.pool.fetch(
            "SELECT first_entry_id, last_entry_id FROM blocks WHERE org_id ="
            " (SELECT org_id FROM orgs WHERE path = 'acme') ORDER BY block_id"
        )
        assert [tuple(row) for row in rows] == [(1, 3), (4, 6), (7, 9), (10, 11)]
        assert sum(sealer.entries for sealer in sealers) == 12

    play(database, act)


def test_an_org_with_more_than_a_block_is_sealed_without_a_rest(database: str) -> None:
    """However much an org writes, its seals keep up; others have their turn in between."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "beta", credits_each=1)
        for _ in range(6):
            await stage.do(Issue(account="acme", amount=CREDIT))
        sealer = Sealer(stage.pool, entries_max=3, orgs_max=1)
        goes_on = [await sealer.tick() for _ in range(4)]
        assert goes_on == [True, True, True, False]
        assert sealer.entries == 8

    play(database, act)


def test_a_block_is_sealed_for_many_entries_or_after_a_while(database: str) -> None:
    """The first entry of an org at once; then few entries wait for more, but not for long."""

    async def act(stage: Scene) -> None:
        sealer = Sealer(stage.pool, entries_min=3, age_us=HOUR_US)
        await stage.fund("acme", credits_each=0)
        sealed = []

        async def step(entries: int, seconds: float) -> None:
            for _ in range(entries):
                await stage.do(Issue(account="acme", amount=CREDIT))
            await stage.advance(seconds)
            await sealer.tick()
            sealed.append(sealer.entries)

        await step(1, 0)
        await step(1, 3_600)
        assert sealed == [1, 2]  # the last block is old
        await step(2, 0)
        await step(1, 0)
        assert sealed == [1, 2, 2, 5]  # three are enough
        await step(1, 0)
        await step(0, 3_600)
        assert sealed == [1, 2, 2, 5, 5, 6]

    play(database, act)


def test_snapshotters_at_once_store_each_sum_once(database: str) -> None:
    """Snapshots may be taken by several at a time."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "acme/vision")
        snapshotters = [
            Snapshotter(stage.pool, entries_between=1, entries_each=0) for _ in range(3)
        ]
        await asyncio.gather(*(each.tick() for each in snapshotters))
        assert await stage.pool.fetchval("SELECT count(*) FROM snapshots") == 2

    play(database, act)


def test_decisions_and_answers_are_forgotten_in_time(database: str) -> None:
    """After its days a decision or an answer is gone, and not before."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=0)
        await stage.do(Reserve(account="acme", job_id="j", gpu_type="h100", milli_gpus=1_000))
        retention = Retention(stage.pool, decisions_days=1, answers_days=2)
        counts = "SELECT (SELECT count(*) FROM decisions), (SELECT count(*) FROM idempotency)"
        for days, left in ((0, (1, 2)), (1.1, (0, 2)), (1.1, (0, 0))):
            await stage.advance(days * 86_400)
            await retention.tick()
            assert tuple(await stage.pool.fetchrow(counts)) == left
        again = await stage.do(CreateAccount(path="acme"), key="key-1")
        assert again.__class__.__name__ == "Refused"

    play(database, act)


class Counting(Paced):
    """A job that fails first and then counts."""

    def __init__(self) -> None:
        super().__init__(rest_s=0.0)
        self.ticks = 0
        self.reached = asyncio.Event()

    async def tick(self) -> bool:
        """Fail twice, in two ways, then work."""
        self.ticks += 1
        if self.ticks == 1:
            raise Unavailable("away")
        if self.ticks == 2:
            raise ZeroDivisionError("a defect")
        self.reached.set()
        return False


def test_a_job_survives_failures_and_stops(caplog: pytest.LogCaptureFixture) -> None:
    """A tick that fails is told of and the next one comes; after the stop none does."""

    async def run() -> None:
        job = Counting()
        await job.start()
        await asyncio.wait_for(job.reached.wait(), HANGS_S)
        await job.stop()
        stopped_at = job.ticks
        await asyncio.sleep(0)
        assert job.ticks == stopped_at

    asyncio.run(run())
    assert "failed and goes on" in caplog.text
