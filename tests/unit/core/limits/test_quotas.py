"""Quotas on what runs at once and on one job: at every scope, at admission and at renewal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpucredits.core.command import (
    AddBoost,
    Cancel,
    EndBoost,
    EndQuota,
    SetQuota,
    Settle,
)
from gpucredits.core.heartbeat import Beat, BeatResult
from gpucredits.core.outcome import Boosted, Closed, QuotaSaved, Reserved
from gpucredits.core.period import Calendar
from gpucredits.core.quota import Counter, Dimension
from gpucredits.core.reasons import Kind, Reason, kind_of
from gpucredits.core.reservation import Decision
from support.books.asking import ALICE, ask
from support.books.ledger import CREDIT, SECOND, START, Ledger

SCOPES = ["acme", "acme/vision", ALICE]
GPUS = Dimension.CONCURRENT_GPUS
JOBS = Dimension.CONCURRENT_JOBS
PER_JOB = Dimension.CREDITS_PER_JOB


@pytest.fixture(autouse=True)
def plenty(ledger: Ledger) -> None:
    """Credits are never what is missing here."""
    ledger.grant("acme", 1_000_000 * CREDIT)


def set_quota(
    ledger: Ledger, account: str, dimension: Dimension, limit: int, gpu_type: str = ""
) -> int:
    """Set a quota; its id."""
    command = SetQuota(account=account, dimension=dimension, limit=limit, gpu_type=gpu_type)
    return ledger.accept(command, QuotaSaved).quota.quota_id


def counter(ledger: Ledger, quota_id: int) -> Counter:
    """What a reader sees a quota count."""
    return ledger.view().limits.counters[quota_id]


@pytest.mark.parametrize("scope", SCOPES)
def test_gpus_at_once_are_limited_at_every_scope(ledger: Ledger, scope: str) -> None:
    """The quota of the org, of the project and of the user each refuse the GPU too many."""
    set_quota(ledger, scope, GPUS, 4_000)
    ledger.lease(ALICE, milli_gpus=3_000)
    refused = ledger.refuse(ask(milli_gpus=2_000))
    assert (refused.reason, kind_of(refused.reason)) == (Reason.QUOTA_EXCEEDED, Kind.LIMIT)
    assert (
        refused.detail.items()
        >= {
            "gate": "quota",
            "account": scope,
            "name": "concurrent GPUs",
            "limit": "4",
            "current": "3",
            "requested": "2",
        }.items()
    )
    assert refused.message == (
        f"{scope} has taken 3 of 4 GPUs, its limit of concurrent GPUs, and 2 more are needed. "
        "It clears when running work ends."
    )
    ledger.lease(ALICE, milli_gpus=1_000)


@pytest.mark.parametrize("scope", SCOPES)
def test_jobs_at_once_are_limited_at_every_scope(ledger: Ledger, scope: str) -> None:
    """A job more than the quota is refused; more nodes of a job that runs are not."""
    set_quota(ledger, scope, JOBS, 2)
    ledger.lease(ALICE, job_id="a")
    ledger.lease(ALICE, job_id="b")
    ledger.lease(ALICE, job_id="b", node="n2")
    assert ledger.reason(ask(job_id="c")) is Reason.QUOTA_EXCEEDED


def test_a_job_keeps_its_slot_until_its_last_lease_ends(ledger: Ledger) -> None:
    """The slot of a job over two nodes is free when both have ended, in whatever order."""
    quota = set_quota(ledger, ALICE, JOBS, 1)
    first = ledger.lease(ALICE, job_id="a").reservation_id
    second = ledger.lease(ALICE, job_id="a").reservation_id
    ledger.accept(Cancel(reservation_id=first), Closed)
    assert ledger.reason(ask(job_id="b")) is Reason.QUOTA_EXCEEDED
    ledger.accept(Cancel(reservation_id=second), Closed)
    assert counter(ledger, quota).count == 0
    ledger.lease(ALICE, job_id="b")


@pytest.mark.parametrize("dimension", [GPUS, JOBS])
def test_a_quota_may_be_for_one_gpu_type(ledger: Ledger, dimension: Dimension) -> None:
    """A quota on a100 leaves h100 alone, and says which type it is about."""
    set_quota(ledger, "acme", dimension, 1_000 if dimension is GPUS else 1, "a100")
    for number in range(3):
        ledger.lease(ALICE, job_id=f"h{number}")
    ledger.lease(ALICE, job_id="a0", gpu_type="a100")
    refused = ledger.refuse(ask(job_id="a1", gpu_type="a100"))
    assert str(refused.detail["name"]).endswith("on a100")


def test_a_quota_counts_what_runs_whoever_pays(ledger: Ledger) -> None:
    """A job paid by the org counts at its user; a user next door has slots of his own."""
    set_quota(ledger, ALICE, GPUS, 1_000)
    ledger.open("acme/vision/bob")
    ledger.lease(ALICE, payer="acme")
    assert ledger.reason(ask(payer="acme")) is Reason.QUOTA_EXCEEDED
    ledger.lease("acme/vision/bob")


@pytest.mark.parametrize("end", ["settle", "cancel", "lapse"])
def test_slots_are_freed_however_a_lease_ends(ledger: Ledger, end: str) -> None:
    """Settled, canceled or lapsed: the slots are free at once, with nobody sweeping."""
    for scope in SCOPES:
        set_quota(ledger, scope, GPUS, 2_000)
        set_quota(ledger, scope, JOBS, 1)
    lease = ledger.lease(ALICE, milli_gpus=2_000).reservation_id
    assert ledger.reason(ask(job_id="next", milli_gpus=2_000)) is Reason.QUOTA_EXCEEDED
    if end == "settle":
        ledger.accept(Settle(reservation_id=lease), Closed)
    elif end == "cancel":
        ledger.accept(Cancel(reservation_id=lease), Closed)
    else:
        ledger.wait(s=120)
    ledger.lease(ALICE, job_id="next", milli_gpus=2_000)


def test_a_crashed_node_frees_slots_that_another_payer_wants(ledger: Ledger) -> None:
    """A lapsed lease counts for nothing even when a request of another payer is what asks."""
    ledger.grant(ALICE, 100 * CREDIT)
    set_quota(ledger, "acme", GPUS, 1_000)
    ledger.lease(ALICE)
    wanted = replace(ask(payer="acme"), account="acme/vision")
    ledger.wait(s=119)
    assert ledger.reason(wanted) is Reason.QUOTA_EXCEEDED
    ledger.wait(s=1)
    ledger.accept(wanted, Reserved)


def test_a_new_quota_counts_what_already_runs(ledger: Ledger) -> None:
    """A quota set over running jobs refuses the next one; what runs goes on if it fits."""
    lease = ledger.lease(ALICE, milli_gpus=2_000, job_id="a").reservation_id
    ledger.lease(ALICE, milli_gpus=1_000, job_id="b")
    gpus, jobs = set_quota(ledger, "acme", GPUS, 3_000), set_quota(ledger, ALICE, JOBS, 2)
    assert (counter(ledger, gpus).count, counter(ledger, jobs).count) == (3_000, 2)
    assert ledger.reason(ask(job_id="c")) is Reason.QUOTA_EXCEEDED
    ledger.wait(s=10)
    assert ledger.accept(Beat(lease, 1, 10_000), BeatResult).decision == "continue"


def test_a_quota_that_is_taken_away_limits_nothing(ledger: Ledger) -> None:
    """Without its quota an account runs what it likes; setting it again counts anew."""
    quota = set_quota(ledger, ALICE, JOBS, 1)
    ledger.lease(ALICE, job_id="a")
    ledger.accept(EndQuota(quota_id=quota), QuotaSaved)
    ledger.lease(ALICE, job_id="b")
    assert ledger.reason(EndQuota(quota_id=quota)) is Reason.LIMIT_UNKNOWN
    again = set_quota(ledger, ALICE, JOBS, 2)
    assert again != quota
    assert ledger.reason(ask(job_id="c")) is Reason.QUOTA_EXCEEDED
    assert set_quota(ledger, ALICE, JOBS, 3) == again
    ledger.lease(ALICE, job_id="c")


def test_a_lowered_limit_drains_no_more_than_it_has_to(ledger: Ledger) -> None:
    """Eight GPUs under a limit lowered to six: one job of two is told to go, the others stay."""
    set_quota(ledger, "acme", GPUS, 8_000)
    leases = [ledger.lease(ALICE, milli_gpus=2_000, job_id=f"{n}").reservation_id for n in range(4)]
    quota = set_quota(ledger, "acme", GPUS, 6_000)
    ledger.wait(s=10)
    answers = [ledger.accept(Beat(lease, 1, 10_000), BeatResult) for lease in leases]
    assert [answer.decision for answer in answers] == ["drain", *["continue"] * 3]
    assert (answers[0].reason, answers[0].expires_in_ms) == ("quota_exceeded", 110_000)
    assert (counter(ledger, quota).count, counter(ledger, quota).leaving) == (8_000, 2_000)
    ledger.wait(s=50)
    answers = [ledger.accept(Beat(lease, 2, 60_000), BeatResult) for lease in leases]
    assert [answer.decision for answer in answers] == ["drain", *["continue"] * 3]
    assert answers[0].expires_in_ms == 60_000, "its deadline stands"
    ledger.wait(s=60)
    assert (counter(ledger, quota).count, counter(ledger, quota).leaving) == (6_000, 0)


def test_a_limit_raised_again_lets_work_stay(ledger: Ledger) -> None:
    """What was told to go may stay once there is room, and its lease is renewed in full."""
    quota = set_quota(ledger, "acme", JOBS, 1)
    lease = ledger.lease(ALICE).reservation_id
    set_quota(ledger, "acme", JOBS, 0)
    ledger.wait(s=10)
    assert ledger.accept(Beat(lease, 1, 10_000), BeatResult).decision == "drain"
    set_quota(ledger, "acme", JOBS, 1)
    answer = ledger.accept(Beat(lease, 2, 10_000), BeatResult)
    assert (answer.decision, answer.expires_in_ms) == ("continue", 120_000)
    assert counter(ledger, quota).leaving == 0


def test_a_job_of_two_nodes_leaves_as_one_job(ledger: Ledger) -> None:
    """Both leases of a job that has to go count as one job on its way out."""
    quota = set_quota(ledger, "acme", JOBS, 3)
    pair = [ledger.lease(ALICE, job_id="a").reservation_id for _ in range(2)]
    other = ledger.lease(ALICE, job_id="b").reservation_id
    set_quota(ledger, "acme", JOBS, 0)
    ledger.wait(s=10)
    for lease in (*pair, other):
        assert ledger.accept(Beat(lease, 1, 10_000), BeatResult).decision == "drain"
    assert (counter(ledger, quota).count, counter(ledger, quota).leaving) == (2, 2)
    ledger.accept(Settle(reservation_id=pair[0]), Closed)
    assert (counter(ledger, quota).count, counter(ledger, quota).leaving) == (2, 2)
    ledger.accept(Settle(reservation_id=pair[1]), Closed)
    assert (counter(ledger, quota).count, counter(ledger, quota).leaving) == (1, 1)


@pytest.mark.parametrize("nodes", [2, 3])
def test_a_lowered_limit_on_jobs_drains_whole_jobs(ledger: Ledger, nodes: int) -> None:
    """Two jobs under a limit lowered to one: every node of the first goes, none of the other."""
    quota = set_quota(ledger, "acme", JOBS, 2)
    leases = {
        job: [ledger.lease(ALICE, job_id=job).reservation_id for _ in range(nodes)] for job in "ab"
    }
    set_quota(ledger, "acme", JOBS, 1)
    for seq in (1, 2):
        ledger.wait(s=10)
        for job in "ba" if seq == 2 else "ab":
            told = [
                ledger.accept(Beat(each, seq, seq * 10_000), BeatResult) for each in leases[job]
            ]
            assert {answer.decision for answer in told} == {"drain" if job == "a" else "continue"}
    assert (counter(ledger, quota).count, counter(ledger, quota).leaving) == (2, 1)
    ledger.wait(s=115)  # the nodes of a ended where their leases did
    told = [ledger.accept(Beat(each, 3, 135_000), BeatResult) for each in leases["b"]]
    assert {answer.decision for answer in told} == {"continue"}
    assert (counter(ledger, quota).count, counter(ledger, quota).leaving) == (1, 0)


def test_a_job_that_has_to_go_may_stay_with_all_its_nodes(ledger: Ledger) -> None:
    """Another job has ended in the meantime: there is room for the one that was told to go."""
    quota = set_quota(ledger, "acme", JOBS, 2)
    pair = [ledger.lease(ALICE, job_id="a").reservation_id for _ in range(2)]
    other = ledger.lease(ALICE, job_id="b").reservation_id
    set_quota(ledger, "acme", JOBS, 1)
    ledger.wait(s=10)
    for lease in pair:
        assert ledger.accept(Beat(lease, 1, 10_000), BeatResult).decision == "drain"
    ledger.accept(Settle(reservation_id=other), Closed)
    for lease in pair:
        assert ledger.accept(Beat(lease, 2, 10_000), BeatResult).decision == "continue"
    assert (counter(ledger, quota).count, counter(ledger, quota).leaving) == (1, 0)


def test_a_boost_lapses_by_itself(ledger: Ledger) -> None:
    """Between its two instants a boost adds to the limit; afterwards the excess drains."""
    quota = set_quota(ledger, ALICE, GPUS, 1_000)
    boost = AddBoost(
        target_id=quota, amount=1_000, starts_at=START + 10 * SECOND, ends_at=START + 60 * SECOND
    )
    ledger.accept(boost, Boosted)
    first = ledger.lease(ALICE, job_id="a").reservation_id
    assert ledger.reason(ask(job_id="b")) is Reason.QUOTA_EXCEEDED
    ledger.wait(s=10)
    second = ledger.lease(ALICE, job_id="b").reservation_id
    ledger.wait(s=49)
    assert ledger.accept(Beat(second, 1, 49_000), BeatResult).decision == "continue"
    ledger.wait(s=1)
    assert ledger.accept(Beat(second, 2, 50_000), BeatResult).decision == "drain"
    assert ledger.accept(Beat(first, 1, 60_000), BeatResult).decision == "continue"
    assert ledger.reason(ask(job_id="c")) is Reason.QUOTA_EXCEEDED


@pytest.mark.parametrize("after_s", [0, 5, 30])
def test_a_boost_can_be_ended_early(ledger: Ledger, after_s: int) -> None:
    """Before it begins, as it begins or in its midst: from then on the limit is its own."""
    quota = set_quota(ledger, ALICE, GPUS, 1_000)
    boost = AddBoost(
        target_id=quota, amount=1_000, starts_at=START + 5 * SECOND, ends_at=START + 60 * SECOND
    )
    number = ledger.accept(boost, Boosted).boost.boost_id
    ledger.wait(s=after_s)
    ended = ledger.accept(EndBoost(target_id=quota, boost_id=number), Boosted).boost
    assert (ended.starts_at, ended.ends_at) == (min(START + 5 * SECOND, ledger.now), ledger.now)
    ledger.wait(s=10)
    ledger.lease(ALICE, job_id="a")
    assert ledger.reason(ask(job_id="b")) is Reason.QUOTA_EXCEEDED
    unknown = EndBoost(target_id=quota, boost_id=number + 99)
    assert ledger.reason(unknown) is Reason.LIMIT_UNKNOWN


def test_one_job_may_cost_no_more_than_its_cap(ledger: Ledger) -> None:
    """The least cap on its way ends a job where it is used up, as its own max_amount would."""
    set_quota(ledger, "acme", PER_JOB, 3 * CREDIT)
    set_quota(ledger, ALICE, PER_JOB, 2 * CREDIT)
    lease = ledger.lease(ALICE).reservation_id
    ledger.wait(s=60)
    assert ledger.accept(Beat(lease, 1, 60_000), BeatResult).decision == "continue"
    ledger.wait(s=60)
    answer = ledger.accept(Beat(lease, 2, 120_000), BeatResult)
    assert (answer.decision, answer.reason) == (Decision.DRAIN, "quota_exceeded")
    assert (answer.settled + answer.held, answer.expires_in_ms) == (2 * CREDIT, 80_000)


def test_a_cap_below_the_first_window_shortens_the_lease(ledger: Ledger) -> None:
    """A cap that pays for less than a window admits the job for what it pays."""
    set_quota(ledger, "acme", PER_JOB, CREDIT)
    lease = ledger.lease(ALICE)
    assert (lease.held, lease.expires_at) == (CREDIT, START + 100 * SECOND)


def test_a_cap_that_pays_for_nothing_refuses(ledger: Ledger) -> None:
    """A cap of nothing admits nothing, and never clears."""
    set_quota(ledger, "acme", PER_JOB, 0)
    refused = ledger.refuse(ask())
    assert refused.reason is Reason.QUOTA_EXCEEDED
    assert refused.message.endswith("It never clears: the request alone is over the limit.")


WRONG = {
    "a window without a calendar": (Dimension.CREDITS_PER_WINDOW, None, 0, "UTC"),
    "both sorts of window": (Dimension.CREDITS_PER_WINDOW, Calendar.DAY, 5, "UTC"),
    "a window on GPUs": (GPUS, Calendar.DAY, 0, "UTC"),
    "more rolling hours than there may be": (Dimension.CREDITS_PER_WINDOW, None, 745, "UTC"),
}


@pytest.mark.parametrize(("dimension", "calendar", "hours", "zone"), WRONG.values(), ids=WRONG)
def test_a_quota_that_makes_no_sense_is_refused(
    ledger: Ledger, dimension: Dimension, calendar: Calendar | None, hours: int, zone: str
) -> None:
    """A window belongs to credits per window, and there is one of them."""
    command = SetQuota(
        account="acme",
        dimension=dimension,
        limit=1,
        calendar=calendar,
        rolling_hours=hours,
        zone=zone,
    )
    assert ledger.reason(command) is Reason.LIMIT_INVALID


def test_an_unknown_zone_or_account_or_limit_is_refused(ledger: Ledger) -> None:
    """Each is named for what it is."""
    window = {"dimension": Dimension.CREDITS_PER_WINDOW, "limit": 1, "calendar": Calendar.DAY}
    zone = SetQuota(account="acme", zone="Mars/Olympus", **window)  # type: ignore[arg-type]
    assert ledger.reason(zone) is Reason.ZONE_UNKNOWN
    nobody = SetQuota(account="nobody", dimension=GPUS, limit=1)
    assert ledger.reason(nobody) is Reason.ACCOUNT_UNKNOWN
    assert ledger.reason(AddBoost(target_id=99, amount=1, ends_at=START)) is Reason.LIMIT_UNKNOWN
    quota = set_quota(ledger, "acme", GPUS, 1_000)
    late = AddBoost(target_id=quota, amount=1, ends_at=START)
    assert ledger.reason(late) is Reason.WINDOW_ENDED


def test_a_price_typo_is_contained_by_a_cap_and_undone_by_a_new_price(ledger: Ledger) -> None:
    """Museum 16: a price a thousand times too high stops at the cap; a new price undoes it."""
    set_quota(ledger, "acme", PER_JOB, 5 * CREDIT)
    ledger.price("h100", 36_000 * CREDIT, since=1)
    lease = ledger.lease(ALICE)
    assert (lease.held, lease.expires_at) == (5 * CREDIT, START + SECOND // 2)
    ledger.price("h100", 36 * CREDIT, since=2)
    assert ledger.lease(ALICE, job_id="again").held == 1_200_000
