"""Many writers at once: exact admission, one effect for each key, fairness, and isolation."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from gpucredits.core.book import Book, InvariantBroken
from gpucredits.core.command import Command, CreateAccount, Issue, Reserve, Transfer
from gpucredits.core.decide import decide
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.outcome import Granted, Outcome, Reserved
from gpucredits.core.reasons import Refused
from gpucredits.service.write import batch, batch_worker
from gpucredits.service.write.batch import Job
from gpucredits.service.write.errors import Busy, Closing
from gpucredits.service.write.ledger import DEFAULTS, WriteOptions
from gpucredits.store.book import save
from gpucredits.store.book.book_cache import BookCache
from gpucredits.store.database.connection import Connection
from gpucredits.store.database.errors import Conflict, Unavailable
from support.scenes.scene import CREDIT, Scene, play, scene


def reserve(number: int) -> Reserve:
    """A job that holds ten credits."""
    return Reserve(
        account="acme", job_id=f"job-{number}", gpu_type="h100", milli_gpus=1_000, window_ms=10_000
    )


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches that wait for a lock for as long as a test may take."""
    monkeypatch.setattr(save, "SESSION", save.SESSION.replace("'1s'", "'600s'"))


def test_funds_for_k_admit_exactly_k(database: str) -> None:
    """64 callers at once on funds for k jobs: k are admitted, every round, on two servers."""

    async def act(stage: Scene) -> None:
        async with scene(database) as other:
            for round_number, funded in enumerate((1, 7, 20, 63)):
                org = f"org{round_number}"
                await stage.do(CreateAccount(path=org), org=org)
                await stage.do(Issue(account=org, amount=(10 * funded + 9) * CREDIT), org=org)
                wanted = {
                    "account": org,
                    "gpu_type": "h100",
                    "milli_gpus": 1_000,
                    "window_ms": 10_000,
                }
                jobs = [Reserve(job_id=f"j-{number}", **wanted) for number in range(32)]  # type: ignore[arg-type]
                calls = [
                    server.ledger.submit(org, server.request(job, f"{round_number}-{number}"))
                    for number, job in enumerate(jobs)
                    for server in (stage, other)
                ]
                # The same keys on both servers: half of the calls are repetitions.
                outcomes = await asyncio.gather(*calls)
                admitted = {
                    outcome.reservation.reservation_id
                    for outcome in outcomes
                    if isinstance(outcome, Reserved)
                }
                assert len(admitted) == min(funded, 32)

    play(database, act)


def test_64_distinct_callers_on_funds_for_k(database: str) -> None:
    """Without repetitions too, exactly k of 64 are admitted and the rest say why not."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=175)
        outcomes = await asyncio.gather(*(stage.do(reserve(number)) for number in range(64)))
        assert sum(isinstance(each, Reserved) for each in outcomes) == 17
        refused = [each for each in outcomes if isinstance(each, Refused)]
        assert {each.reason.value for each in refused} == {"insufficient_credits"}

    play(database, act)


def test_one_key_in_flight_many_times_has_one_effect(database: str) -> None:
    """Equal requests at once, in one batch and over two servers, get one equal answer."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=0)
        async with scene(database) as other:
            issue = Issue(account="acme", amount=CREDIT)
            outcomes = await asyncio.gather(
                *(server.do(issue, key="the-key") for _ in range(20) for server in (stage, other))
            )
            assert all(outcome == outcomes[0] for outcome in outcomes)
            assert isinstance(outcomes[0], Granted)
        assert (await stage.balance()).available == CREDIT

    play(database, act)


def test_ring_transfers_keep_the_total(database: str) -> None:
    """32 writers move credits in a ring over two servers: no error reaches them, sums stay."""

    async def act(stage: Scene) -> None:
        names = [f"acme/p{number}" for number in range(8)]
        await stage.fund("acme", credits_each=0)
        await stage.fund(*names, credits_each=50)
        async with scene(database) as other:

            async def move(writer: int) -> list[Outcome]:
                dice = random.Random(writer)
                server = (stage, other)[writer % 2]
                outcomes: list[Outcome] = []
                for _ in range(12):
                    at = dice.randrange(len(names))
                    command = Transfer(
                        source=names[at],
                        target=names[(at + 1) % len(names)],
                        amount=dice.randrange(1, 20 * CREDIT),
                    )
                    outcomes.append(await server.do(command, key=f"{writer}-{len(outcomes)}"))
                return outcomes

            await asyncio.gather(*(move(writer) for writer in range(32)))
        assert (await stage.balance(tree=True)).available == 8 * 50 * CREDIT

    play(database, act)


def poisoned(book: Book, command: Command, now: int) -> Outcome:
    """The rules, except that one job and one lease cannot be decided."""
    if isinstance(command, Reserve) and command.job_id == "job-13":
        raise ZeroDivisionError("a defect")
    if isinstance(command, Beat) and command.seq == 13:
        raise InvariantBroken("a contradiction")
    return decide(book, command, now)


def test_neighbours_of_a_failing_command_are_unharmed(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One command that cannot be decided fails alone; the batch's others are carried out."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=1_000)

        def poisoned_beats(book: Book, beats: list[Beat], now: int) -> list[Outcome]:
            return [poisoned(book, beat, now) for beat in beats]

        monkeypatch.setattr(batch, "decide", poisoned)
        monkeypatch.setattr(batch, "decide_beats", poisoned_beats)
        results = await asyncio.gather(
            *(stage.do(reserve(number)) for number in range(30)), return_exceptions=True
        )
        assert [type(each) is Reserved for each in results] == [n != 13 for n in range(30)]
        assert isinstance(results[13], ZeroDivisionError)
        leases = [each for each in results if isinstance(each, Reserved)]
        org_id = await stage.ledger.org_id("acme")
        assert org_id is not None
        beats = [
            (org_id, Beat(lease.reservation.reservation_id, 10 + place, 0))
            for place, lease in enumerate(leases)
        ]
        answers = await stage.ledger.beat(beats)
        assert [type(each) for each in answers] == [
            InvariantBroken if beat.seq == 13 else BeatResult for _, beat in beats
        ]

    play(database, act)


def test_a_conflict_is_tried_again_and_never_a_refusal(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deadlocks and the like are run again, a bounded number of times, then unavailable."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        real, failures = batch.commit, iter([True, True, False])

        async def contended(
            connection: Connection, jobs: Sequence[Job], cache: BookCache
        ) -> list[batch.Result]:
            if next(failures, True):
                raise Conflict("another was first")
            return await real(connection, jobs, cache)

        monkeypatch.setattr(batch_worker, "commit", contended)
        assert isinstance(await stage.do(reserve(1)), Reserved)
        with pytest.raises(Unavailable):
            await stage.do(reserve(2))

    play(database, act)


def test_a_full_queue_is_busy_for_its_own_org_only(database: str) -> None:
    """A flood from one org meets the bound; another org's command in the same call does not."""
    options = WriteOptions(
        heartbeats=replace(DEFAULTS.heartbeats, org_waiting_max=50),
        commands=replace(DEFAULTS.commands, org_waiting_max=5),
    )

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "quiet", credits_each=50)
        flooder, quiet = await stage.ledger.org_id("acme"), await stage.ledger.org_id("quiet")
        assert flooder is not None
        assert quiet is not None
        flood = [(flooder, Beat(999, 1, 1))] * 150
        answers = await stage.ledger.beat([*flood, (quiet, Beat(999, 1, 1))])
        assert [type(each) for each in answers[:-1]] == [Refused] * 50 + [Busy] * 100
        assert isinstance(answers[-1], Refused)
        many = await asyncio.gather(
            *(stage.do(reserve(number)) for number in range(20)), return_exceptions=True
        )
        assert {type(each) for each in many} == {Reserved, Busy}

    play(database, act, options=options)


@pytest.mark.usefixtures("patient")
def test_a_command_waits_for_no_heartbeats(database: str) -> None:
    """While a batch of heartbeats hangs in the database, another org's admission goes through."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "quiet", credits_each=50)
        stuck = await stage.ledger.org_id("acme")
        assert stuck is not None
        async with stage.pool.acquire() as holder, holder.transaction():
            await holder.execute("SELECT 1 FROM orgs WHERE org_id = $1 FOR UPDATE", stuck)
            beating = asyncio.create_task(stage.ledger.beat([(stuck, Beat(999, 1, 1))]))
            for _ in range(3):
                assert isinstance(
                    await stage.do(Issue(account="quiet", amount=1), org="quiet"), Granted
                )
            assert not beating.done()
        assert isinstance((await beating)[0], Refused)

    play(database, act)


def test_a_caller_who_leaves_is_not_carried_out(database: str) -> None:
    """A request cancelled while it waits has no effect; one under way runs to its end."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=0)
        task = asyncio.create_task(stage.do(Issue(account="acme", amount=CREDIT)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await stage.do(Issue(account="acme", amount=2 * CREDIT))
        assert (await stage.balance()).available == 2 * CREDIT

    play(database, act)


def test_a_closing_ledger_takes_no_more(database: str) -> None:
    """After the stop a command is told to try elsewhere."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        await stage.ledger.stop()
        with pytest.raises(Closing):
            await stage.do(reserve(1))

    play(database, act)
