"""What is saved only if it is still true: every condition, and what happens without it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from time import monotonic
from typing import Any

import pytest

from gpucredits.core.command import (
    Cancel,
    Issue,
    Reserve,
)
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.outcome import Closed, Reserved
from gpucredits.core.reasons import Reason, Refused
from gpucredits.service.billing.prices import NewPrice, add_price
from gpucredits.service.write import batch, batch_record
from gpucredits.service.write.acts import Act
from gpucredits.service.write.ledger import Ledger
from gpucredits.store.book import save
from gpucredits.store.book.book_cache import GuardResult
from gpucredits.store.book.database_clock import DatabaseClock
from support.books.kept import counted_reads, without
from support.scenes.scene import CREDIT, PRICE, Scene, play


async def report(ledger: Ledger, lease: int, seq: int, used_ms: int) -> BeatResult:
    """One heartbeat of a lease of the first org."""
    [outcome] = await ledger.beat([(1, Beat(lease, seq, used_ms))])
    assert isinstance(outcome, BeatResult), outcome
    return outcome


async def take_turns(stage: Scene) -> int:
    """Two servers report one lease in turn, and one issues credits between; what was spent."""
    await stage.fund("acme")
    other = Ledger(stage.pool)
    try:
        lease = (await stage.reserve(window_ms=60_000)).reservation.reservation_id
        await stage.advance(9)
        for turn in range(1, 9):
            ledger = (stage.ledger, other)[turn % 2]
            assert (await report(ledger, lease, turn, turn * 1_000)).decision == "continue"
        await stage.do(Issue(account="acme", amount=CREDIT))
        await report(other, lease, 9, 8_500)
    finally:
        await other.stop()
    return (await stage.balance()).spent


NODES = "r.node = n.node"


def verdicts_of(monkeypatch: pytest.MonkeyPatch) -> list[GuardResult]:
    """Every verdict on what is saved, as it falls."""
    verdicts: list[GuardResult] = []
    save_if = save.save_if

    async def noted(*everything: Any) -> GuardResult:
        verdicts.append(await save_if(*everything))
        return verdicts[-1]

    monkeypatch.setattr(batch, "save_if", noted)
    return verdicts


def test_a_page_that_another_server_has_changed_is_read_anew(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two servers with pages of one org never lose each other's changes."""
    verdicts = verdicts_of(monkeypatch)
    assert play(database, take_turns) == 8_500_000
    assert [each.changed for each in verdicts if not each.holds and each.changed] == [(1,), (1,)]
    assert all(each.offset_us is not None for each in verdicts)


def test_a_version_that_is_not_looked_at_loses_changes(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: with every version taken for the right one, two entries claim one number.

    The key of the entries' table is a second guard, and stops it.
    """
    without(monkeypatch, "m.found = $2::text::bigint[]")
    verdicts = verdicts_of(monkeypatch)
    assert play(database, take_turns) == 8_500_000
    assert any(each.offset_us is None for each in verdicts)


def test_a_new_price_holds_for_the_next_admission(database: str) -> None:
    """Whoever set it: a price that is kept is not used when there may be a newer one."""
    assert play(database, admit_at_new_price) == PRICE // 2


def test_a_new_price_that_is_not_looked_for_is_overlooked(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: the price that was kept is used."""
    without(
        monkeypatch,
        "($5::bigint IS NULL OR (SELECT s.prices_version FROM system_state s) = $5)",
    )
    assert play(database, admit_at_new_price) == PRICE


async def admit_at_new_price(stage: Scene) -> int:
    """Set a price between two admissions; the price of the second."""
    await stage.pool.execute("SELECT setval('price_numbers', 1)")  # the scene's is 1
    await stage.fund("acme")
    await stage.reserve()
    now = await stage.pool.fetchval("SELECT ledger_now()")
    await set_price(stage, PRICE // 2, now)
    return (await stage.reserve()).reservation.price


def test_a_scheduled_price_holds_for_every_admission_after_its_start(database: str) -> None:
    """Nobody adds anything at that instant, and another org has asked for prices since."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", "other", credits_each=1_000)
        await schedule(stage, PRICE // 2, seconds=60)
        assert (await stage.reserve(window_ms=120_000)).reservation.price == PRICE
        await stage.advance(61)
        assert (await stage.reserve("other")).reservation.price == PRICE // 2
        assert (await stage.reserve()).reservation.price == PRICE // 2

    play(database, act)


def test_a_price_that_starts_before_the_time_of_the_org_is_not_overlooked(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A guess of the time may be a little late; what is decided is decided at the org's time."""
    guess = DatabaseClock.now

    def late(watch: DatabaseClock) -> int | None:
        now = guess(watch)
        return None if now is None else now - 3_000_000

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=1_000)
        await schedule(stage, PRICE // 2, seconds=10)
        monkeypatch.setattr(DatabaseClock, "now", late)
        assert (await stage.reserve(window_ms=60_000)).reservation.price == PRICE
        await stage.advance(11)
        await stage.do(Issue(account="acme", amount=CREDIT))  # moves the org's time
        assert (await stage.reserve()).reservation.price == PRICE // 2

    play(database, act)


async def schedule(stage: Scene, price: int, *, seconds: int) -> None:
    """Let another list price be in force from some time on."""
    await stage.pool.execute("SELECT setval('price_numbers', 1)")  # the scene's is 1
    starts_at = await stage.pool.fetchval("SELECT ledger_now()") + seconds * 1_000_000
    await set_price(stage, price, starts_at)


async def set_price(stage: Scene, price: int, starts_at: int) -> None:
    """Set a list price, as an administrator does."""
    new = NewPrice(
        gpu_type="h100", region="default", credits_per_gpu_hour=price, effective_from=starts_at
    )
    await add_price(stage.pool, Act(org_id=0, actor="tester"), new)


def test_a_key_that_was_used_is_found_without_being_looked_for(database: str) -> None:
    """A repeat meets the key of the answers' table, and is answered as the first one was."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        await stage.reserve()
        wanted = Reserve(account="acme", job_id="j", gpu_type="h100", milli_gpus=1_000)
        first = await stage.do(wanted, key="same")
        before = await stage.balance()
        assert await stage.do(wanted, key="same") == first
        assert (await stage.balance()).reserved == before.reserved

    play(database, act)


def test_a_key_whose_answer_is_not_kept_is_looked_for(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told to wait, a caller leaves no trace that a repeat could meet."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=10)
        await stage.reserve(window_ms=1_000)
        wanted = Reserve(account="acme", job_id="j", gpu_type="h100", milli_gpus=1_000)
        admitted = await stage.do(replace(wanted, window_ms=9_000), key="admitted")
        monkeypatch.setattr(batch_record, "is_remembered", lambda outcome: False)
        reads = counted_reads(monkeypatch)
        refused = await stage.do(replace(wanted, node="n", window_ms=9_000), key="once")
        assert isinstance(refused, Refused)
        assert reads == []
        again = await stage.do(replace(wanted, window_ms=9_000), key="admitted")
        assert again == admitted
        assert [needs.keys for needs in reads] == [{(1, "admitted")}]

    play(database, act)


def test_what_the_clock_has_made_true_is_not_decided_by_an_old_guess(database: str) -> None:
    """A lease lapses while the server guesses the time: the guess is found wrong, not believed."""
    assert play(database, lapse) == "stop"


def test_a_guess_that_is_not_looked_at_renews_what_has_lapsed(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: with every guess of the time taken for right, a lapsed lease runs on."""
    monkeypatch.setattr(
        DatabaseClock, "now", lambda watch: watch._lead_us + int(monotonic() * 1_000_000)
    )
    without(monkeypatch, "coalesce(m.offset_us = $3, true)")
    without(monkeypatch, "m.now - $4 BETWEEN 0 AND 5000000")
    assert play(database, lapse, stays_sound=False) == "continue"


async def lapse(stage: Scene) -> str:
    """Report a lease that has lapsed since it last did; what it is told."""
    await stage.fund("acme")
    lease = await stage.reserve(window_ms=10_000)
    assert (await stage.beat(lease, 1, 1)).decision == "continue"
    await stage.advance(30)
    return (await stage.beat(lease, 2, 2)).decision


def test_a_key_that_another_server_answers_meanwhile_gets_that_answer(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both servers refuse one request under one key at once: one answer is kept, both give it."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme", credits_each=0)
        other = Ledger(stage.pool)
        save_if, both = save.save_if, asyncio.Barrier(2)

        async def together(*everything: Any) -> Any:
            await both.wait()
            return await save_if(*everything)

        wanted = Reserve(
            account="acme", job_id="j", gpu_type="h100", milli_gpus=1_000, window_ms=1_000
        )
        request = stage.request(wanted, "one-key")
        try:
            with monkeypatch.context() as patched:
                patched.setattr(batch, "save_if", together)
                first, second = await asyncio.gather(
                    stage.ledger.submit("acme", request), other.submit("acme", request)
                )
        finally:
            await other.stop()
        assert first == second
        assert isinstance(first, Refused)

    play(database, act)


def test_an_org_that_two_servers_change_is_locked_before_it_is_decided(database: str) -> None:
    """After the first surprise neither server decides on what the other may have changed."""

    async def act(stage: Scene) -> None:
        await take_turns(stage)
        cache = stage.ledger.cache
        assert cache.is_contested([1])
        assert not cache.is_contested([2])

    play(database, act)


def test_a_job_gets_no_second_lease_on_a_node_without_looking_for_the_first(database: str) -> None:
    """The first lease is on no page: the statement that would save another finds it."""
    assert play(database, take_one_node_twice) == Reason.RESERVATION_EXISTS


def test_a_node_that_is_not_looked_at_is_taken_twice(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: a job has two leases on one node."""
    without(monkeypatch, NODES, "({} AND false)")
    assert play(database, take_one_node_twice) is None


async def take_one_node_twice(stage: Scene) -> Reason | None:
    """A job asks for a node on which it has a lease; why it is refused that."""
    await stage.fund("acme")
    await stage.reserve(job_id="other")
    wanted: dict[str, Any] = {"account": "acme", "job_id": "j", "node": "n1", "gpu_type": "h100"}
    wanted |= {"milli_gpus": 1_000, "window_ms": 10_000}
    first = await stage.do(Reserve(**wanted))
    assert isinstance(first, Reserved)
    assert isinstance(await stage.do(Reserve(**wanted | {"node": "n2"})), Reserved)
    second = await stage.do(Reserve(**wanted))
    return second.reason if isinstance(second, Refused) else None


def test_what_a_question_read_of_nodes_is_not_believed_later(database: str) -> None:
    """A lease that has ended since is in nobody's way, also where no price was found."""

    async def act(stage: Scene) -> None:
        await stage.fund("acme")
        wanted = Reserve(account="acme", job_id="j", node="n", gpu_type="h100", milli_gpus=100)
        first = await stage.do(wanted)
        assert isinstance(first, Reserved)
        question = stage.request(replace(wanted, gpu_type="unheard-of"))
        answer = await stage.ledger.submit("acme", question, dry_run=True)
        assert isinstance(answer, Refused)
        assert answer.reason is Reason.PRICE_UNKNOWN
        end = Cancel(reservation_id=first.reservation.reservation_id)
        without_key = replace(stage.request(end), key=None)  # as what the server does by itself
        assert isinstance(await stage.ledger.submit("acme", without_key), Closed)
        assert isinstance(await stage.do(wanted), Reserved)

    play(database, act)
