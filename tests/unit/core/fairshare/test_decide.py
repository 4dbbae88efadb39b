"""Fair share decided by hand: one pool, one sentence, one answer."""

from __future__ import annotations

import pytest

from gpucredits.core.fairshare.decide import decide
from gpucredits.core.fairshare.decisions import Basis, sentence
from gpucredits.core.fairshare.snapshot import Policy, PoolSnapshot, Scope, Tenant, UsageOrder
from support.books.fairshare_case import HOUR, NOW, Case, ask, job, names

CASES = {
    "an empty pool with nobody waiting decides nothing": Case(8),
    "a single tenant gets the whole pool, oldest first": Case(
        3,
        waiting=(
            ask("c", "a/p/x", 1, submitted_at=NOW - 1),
            ask("a", "a/p/x", 1, submitted_at=NOW - 3),
            ask("b", "a/p/x", 2, submitted_at=NOW - 2),
        ),
        starts="a b",
        waits="c:capacity",
    ),
    "priority counts inside a tenant, before age": Case(
        1,
        waiting=(ask("old", "a/p/x", 1), ask("vip", "a/p/x", 1, priority=5, submitted_at=NOW)),
        starts="vip",
        waits="old:capacity",
    ),
    "priority means nothing between tenants by default": Case(
        1,
        running=(),
        waiting=(ask("a", "a", 1), ask("vip", "b", 1, priority=5)),
        starts="a",
        waits="vip:capacity",
    ),
    "priority counts between tenants when the policy says so": Case(
        1,
        waiting=(ask("a", "a", 1), ask("vip", "b", 1, priority=5)),
        policy=Policy(priority_scope=Scope.POOL),
        starts="vip",
        waits="a:capacity",
    ),
    "weights divide a scarce pool": Case(
        4,
        waiting=tuple(ask(f"{t}{n}", t, 1) for t in "ab" for n in range(4)),
        tenants=(Tenant("a", 3), Tenant("b", 1)),
        starts="a0 b0 a1 a2",
        waits="a3:capacity b1:capacity b2:capacity b3:capacity",
    ),
    "a tenant without weight gets only what the others leave": Case(
        3,
        waiting=tuple(ask(f"{t}{n}", t, 1) for t in "ab" for n in range(2)),
        tenants=(Tenant("a", 0), Tenant("b", 1)),
        starts="b0 b1 a0",
        waits="a1:capacity",
    ),
    "projects and users share within their org": Case(
        4,
        waiting=tuple(
            ask(f"{path.replace('/', '')}{n}", path, 1)
            for path in ("a/p/x", "a/p/y", "a/q/x", "b/p/x")
            for n in range(4)
        ),
        starts="apx0 bpx0 aqx0 bpx1",
        waits="apy0:capacity bpx2:capacity aqx1:capacity bpx3:capacity apx1:capacity aqx2:capacity "
        "apy1:capacity aqx3:capacity apx2:capacity apy2:capacity apx3:capacity apy3:capacity",
    ),
    "an idle pool is borrowed whole": Case(
        4,
        waiting=(ask("a", "a", 4),),
        tenants=(Tenant("a"), Tenant("b")),
        starts="a",
    ),
    "an org that may not borrow keeps to what it is entitled to": Case(
        4,
        waiting=(ask("a", "a", 2), ask("b", "a", 1)),
        tenants=(Tenant("a", may_borrow=False), Tenant("b")),
        starts="a",
        waits="b:borrowing_off",
    ),
    "a gang starts whole": Case(
        4,
        waiting=tuple(ask(f"g{n}", "a", 2, gang="g", gang_size=2) for n in range(2)),
        starts="g0 g1",
    ),
    "a gang larger than what is free waits whole": Case(
        4,
        running=(job("a", "a", 1),),
        waiting=tuple(ask(f"g{n}", "a", 2, gang="g", gang_size=2) for n in range(2)),
        waits="g0:capacity g1:capacity",
    ),
    "a gang larger than the pool is told so and holds up nobody": Case(
        4,
        waiting=(
            *(ask(f"g{n}", "a", 2, gang="g", gang_size=3) for n in range(3)),
            ask("next", "a", 4),
        ),
        starts="next",
        waits="g0:exceeds_pool g1:exceeds_pool g2:exceeds_pool",
    ),
    "a name that is used again is another gang, which starts when it is complete": Case(
        3,
        waiting=(
            ask("m1", "a", 1, gang="g", gang_size=2),
            ask("m3", "a", 1, gang="g", gang_size=2, submitted_at=NOW),
            ask("m9", "a", 1, gang="g", gang_size=2),
        ),
        starts="m1 m9",
        waits="m3:gang_incomplete",
    ),
    "two gangs of one name and unlike sizes do not fill each other up": Case(
        4,
        waiting=(
            *(ask(f"m{n}", "a", 1, gang="g", gang_size=2) for n in range(2)),
            ask("n0", "a", 1, gang="g", gang_size=3),
        ),
        starts="m0 m1",
        waits="n0:gang_incomplete",
    ),
    "a gang waits for its missing members": Case(
        4,
        waiting=(ask("g0", "a", 1, gang="g", gang_size=2),),
        waits="g0:gang_incomplete",
    ),
    "another gate's request holds up nobody": Case(
        1,
        waiting=(ask("poor", "a", 1, held_by="credits"), ask("rich", "a", 1)),
        starts="rich",
        waits="poor:other_gate",
    ),
    "a pool that shrank below what runs starts nothing": Case(
        2,
        running=(job("a", "a", 3, preemptible=False), job("b", "b", 1, preemptible=False)),
        waiting=(ask("mine", "c", 1),),
        waits="mine:capacity",
    ),
    "who is brought nearer to its share goes before who would be thrown far above it": Case(
        8,
        waiting=(
            ask("large", "a", 4),
            *(ask(f"{tenant}{n}", tenant, 1) for tenant in "bcde" for n in range(2)),
        ),
        starts="b0 c0 d0 e0 b1 c1 d1 e1",
        waits="large:capacity",
    ),
    "a job larger than its tenant's share waits behind those within theirs": Case(
        4,
        running=(job("b0", "b", 1),),
        waiting=(ask("large", "a", 3), *(ask(f"b{n}", "b", 1) for n in range(1, 4))),
        starts="b1 b2 b3",
        waits="large:capacity",
    ),
    "but not for ever": Case(
        4,
        running=(job("b0", "b", 1),),
        waiting=(
            ask("large", "a", 3, submitted_at=NOW - HOUR),
            *(ask(f"b{n}", "b", 1) for n in range(1, 4)),
        ),
        starts="large",
        waits="b1:capacity b2:capacity b3:capacity",
    ),
    "a pool that lost everything tells so": Case(
        0, waiting=(ask("mine", "c", 1),), waits="mine:drained"
    ),
    "past use breaks ties when the policy says so": Case(
        1,
        waiting=(ask("a", "a", 1), ask("b", "b", 1)),
        tenants=(Tenant("a", usage=10), Tenant("b", usage=9)),
        policy=Policy(usage_order=UsageOrder.TIES),
        starts="b",
        waits="a:capacity",
    ),
    "past use for the weight comes first when the policy says so": Case(
        3,
        running=(job("b", "b", 1),),
        waiting=(ask("a", "a", 1), ask("b2", "b", 1), ask("b3", "b", 1)),
        tenants=(Tenant("a", 1, usage=10), Tenant("b", 2, usage=19)),
        policy=Policy(usage_order=UsageOrder.FIRST),
        starts="b2 a",
        waits="b3:capacity",
    ),
}


@pytest.mark.parametrize("claim", CASES)
def test_decision(claim: str) -> None:
    """The sentence is true of the pool beside it."""
    CASES[claim].check()


def test_a_pool_without_capacity_does_not_gate() -> None:
    """Everyone starts whom no other gate holds, however much they ask."""
    waiting = tuple(ask(name, "a", 0)._replace(amounts=()) for name in ("x", "y"))
    poor = waiting[0]._replace(request_id="z", held_by="quota")
    decisions = decide(PoolSnapshot(pool="any", now=NOW, waiting=(*waiting, poor)))
    assert names(decisions) == ("x y", "", "z:other_gate")
    assert {row.basis for row in decisions.admissions} == {Basis.UNGATED}


def test_a_pool_of_nothing_is_drained() -> None:
    """Nobody starts, nobody is stopped, and everybody who holds or waits is listed with nothing."""
    case = Case(
        gpus=0,
        running=(job("j", "a/p", 4),),
        waiting=(ask("x", "b", 1), ask("y", "a", 2, gang="g", gang_size=1)),
        tenants=(Tenant("a", 3), Tenant("idle", 2)),
    )
    decisions = case.decide()
    assert names(decisions) == ("", "", "x:drained y:drained")
    assert [(row.path, row.weight) for row in decisions.shares] == [("a", 3), ("a/p", 1), ("b", 1)]
    assert {row[2:] for row in decisions.shares} == {((0, 1),) * 3}


def test_shares_before_and_after() -> None:
    """Shares are exact fractions: what is fair, what was held, and what is held now."""
    case = CASES["weights divide a scarce pool"]
    shares = {row.path: row for row in case.decide().shares}
    assert (shares["a"].fair, shares["a"].before, shares["a"].after) == (
        (3, 4),
        (0, 4_000),
        (3_000, 4_000),
    )
    assert (shares["b"].fair, shares["b"].before, shares["b"].after) == (
        (1, 4),
        (0, 4_000),
        (1_000, 4_000),
    )


WORDS = {
    "an org that may not borrow keeps to what it is entitled to": (
        "Number 1 in the queue: it needs 1 GPU, its org may not borrow, and 0 are left of what it "
        "is entitled to."
    ),
    "a pool that lost everything tells so": (
        "the pool is drained: nobody new gets in until it has GPUs again."
    ),
    "a gang waits for its missing members": "1 of the 2 members of its gang is here.",
    "weights divide a scarce pool": "Number 4 in the queue: it needs 1 GPU, and 0 are free.",
}


@pytest.mark.parametrize("claim", WORDS)
def test_reasons_are_written_for_people(claim: str) -> None:
    """A waiting request can say why in a sentence with numbers."""
    assert sentence(CASES[claim].decide().waiting[-1]) == WORDS[claim]


def test_a_heavy_tenant_beside_many_light_ones_gets_its_share() -> None:
    """Of 60 GPUs, weight 50 beside fifty of weight 1 gets 30; smallest first would give it 10."""
    light = [f"a{n:02}" for n in range(50)]
    waiting = [ask(f"{tenant}-{n}", tenant, 1) for tenant in light for n in range(2)]
    waiting += [ask(f"heavy-{n:02}", "heavy", 1) for n in range(60)]
    case = Case(60, waiting=tuple(waiting), tenants=(Tenant("heavy", 50),))
    assert sum(row.tenant == "heavy" for row in case.decide().admissions) == 30
