"""Rules of the lease: how it starts (reserve) and how it ends (settle, cancel)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpucredits.core import bounds, ids
from gpucredits.core.account import Account, lineage
from gpucredits.core.book import Book
from gpucredits.core.command import Cancel, Explain, Reserve, Settle
from gpucredits.core.entry import EntryType
from gpucredits.core.gate import GateReport
from gpucredits.core.limits import NO_CAP
from gpucredits.core.money import cost, count, format_credits, format_gpus
from gpucredits.core.outcome import Closed, Explained, Reserved
from gpucredits.core.period import instant_text
from gpucredits.core.price import Price, applicable_price, last_end
from gpucredits.core.reasons import LEASE_UNKNOWN, Reason, Refused
from gpucredits.core.reservation import (
    Reservation,
    ReservationState,
    hold_wanted,
    job_cap,
    lease_end,
    longest_window,
)
from gpucredits.core.rule import Rule, State, Touches, touches_lease
from gpucredits.core.rules.credit.funding import allowing, choose, find, funders_of, suspension
from gpucredits.core.rules.leases.authorised import within_authorised
from gpucredits.core.rules.leases.heartbeats import believable, charge_late, post_charge
from gpucredits.core.rules.leases.slices import plan_slice
from gpucredits.core.rules.limits.gates import (
    all_pass,
    evaluate,
    funder_reports,
    refusal,
    who_would_pay,
)
from gpucredits.core.rules.upkeep.claims import drop_claims
from gpucredits.core.rules.upkeep.counting import count_slice, divide, enter, lane_of, left_of_cap
from gpucredits.core.rules.upkeep.lots import collect
from gpucredits.core.rules.upkeep.roll import release, roll, roll_due

LAPSED = "lapsed"  # use was reported after the lease had ended by itself


def reserve(book: Book, command: Reserve, now: int) -> Reserved | Refused:
    """Give a lease whose hold covers one window ahead, at the price in force now."""
    candidate = weigh(book, command, now, tells=False)
    if isinstance(candidate, Refused):
        return candidate
    lease, payer = candidate.lease, candidate.payer
    if refused := refusal(candidate.reports, now):
        return refused
    lease.reservation_id = book.next_id()
    book.touch(payer)
    payer.reserved += lease.held
    payer.due_at = min(payer.due_at, lease.expires_at)
    payer.version += 1
    book.add(lease)
    if book.gated:
        enter(book, lease, now)
        divide(book, lease, lane_of(book, lease, now), 0, lease.held, now)
    book.post(EntryType.RESERVE, payer, lease.held, at=now, reservation_id=lease.reservation_id)
    return Reserved(lease, lease.account, payer.path, (lease.expires_at - now) // 1_000)


def explain(book: Book, command: Explain, now: int) -> Explained | Refused:
    """Say what ``reserve`` would decide and why, on its own road, and leave no trace."""
    opened = book.savepoint is None
    if opened:
        book.begin()
    candidate = weigh(book, command.reserve, now, tells=True)
    outcome: Explained | Refused
    if isinstance(candidate, Refused):
        outcome = candidate
    else:
        lease, payer = candidate.lease, candidate.payer
        refused = refusal(candidate.reports, now)
        outcome = Explained(
            admitted=refused is None,
            account=lease.account,
            payer=payer.path,
            price=lease.price,
            price_id=lease.price_id,
            hold=lease.held,
            lease_ms=(lease.expires_at - now) // 1_000,
            lots=who_would_pay(book, payer, lease.held),
            reports=candidate.reports,
            refusal=refused,
            funders=funder_reports(book, candidate.funders, lease.held, now),
        )
    if opened:
        book.take_back()
    return outcome


@dataclass(frozen=True, slots=True)
class Candidate:
    """A lease that could be given, who would pay for it, and what every gate says of it.

    ``reports`` is empty where all gates pass and nobody asked what they say.
    ``funders`` are all accounts that may pay, nearest first.
    """

    lease: Reservation
    payer: Account
    reports: tuple[GateReport, ...]
    funders: list[Account]


def weigh(book: Book, command: Reserve, now: int, *, tells: bool) -> Candidate | Refused:
    """Draft the lease that was asked for and ask every gate; refuse what makes no sense."""
    account = find_open(book, command.account, now)
    if isinstance(account, Refused):
        return account
    price = applicable_price(
        book.prices,
        account=account.path,
        gpu_type=command.gpu_type,
        region=command.region,
        now=now,
    )
    if price is None:
        return no_price(book, command, now)
    sized = with_window(book, command)
    if isinstance(sized, Refused):
        return sized
    command = sized
    funders = funders_of(book, account, command.payer, command.scope, now)
    if not isinstance(funders, Refused):
        funders = allowing(funders, command.overdraft)
    if isinstance(funders, Refused):
        return funders
    lease = draft(command, account, funders[0], price, now)
    lease.held = hold_wanted(lease, 0, 0, job_cap(lease, NO_CAP))
    lease.expires_at = lease_end(lease, now)
    refused = max_amount_too_small(lease, now) or node_taken(book, lease, now)
    return refused or ask_gates(book, command, lease, funders, now, tells=tells)


def with_window(book: Book, command: Reserve) -> Reserve | Refused:
    """The command with the window that its lease will have; refuses one that is too long."""
    bound, where = book.lease_bound(command.account, command.gpu_type, command.region)
    longest = longest_window(bound, command.escrow_windows)
    window_ms = command.window_ms or min(
        bounds.WINDOW_MS_DEFAULT, max(longest, bounds.WINDOW_MS_MIN)
    )
    asked = window_ms * (1 + command.escrow_windows)
    if asked <= bound:
        return command if command.window_ms else replace(command, window_ms=window_ms)
    advice = f"Ask for a window of at most {longest // 1_000} seconds, or for none."
    if longest < bounds.WINDOW_MS_MIN:
        most = count(bound // bounds.WINDOW_MS_MIN - 1, "escrow window")
        advice = f"Ask for at most {most}, and for a window of a second or none."
    return Refused(
        Reason.WINDOW_TOO_LONG,
        f"This lease could last {asked // 1_000} seconds without a report (the window and its "
        f"escrow windows); {where} allows at most {bound // 1_000}. {advice}",
        {
            "requested_seconds": asked // 1_000,
            "window_max_seconds": bound // 1_000,
            "set_by": where,
        },
    )


def no_price(book: Book, command: Reserve, now: int) -> Refused:
    """The refusal where no price is in force; it says when the last one ended."""
    what = {"gpu_type": command.gpu_type, "region": command.region}
    message = f"No price is in force for {command.gpu_type} in region {command.region}"
    ended_at = last_end(book.prices, account=command.account, now=now, **what)
    if ended_at is None:
        return Refused(Reason.PRICE_UNKNOWN, f"{message}.", {**what})
    text = f"{message}: the last one ended at {instant_text(ended_at)}."
    return Refused(Reason.PRICE_UNKNOWN, text, {**what, "ended_at": ended_at})


def max_amount_too_small(lease: Reservation, now: int) -> Refused | None:
    """Refuse a lease that would end before it began."""
    if lease.expires_at > now:
        return None
    return Refused(
        Reason.MAX_AMOUNT_TOO_SMALL,
        f"max_amount {format_credits(lease.max_amount)} does not pay for a millisecond of "
        f"{format_gpus(lease.milli_gpus)} {lease.gpu_type}.",
        {"max_amount": format_credits(lease.max_amount)},
    )


def ask_gates(
    book: Book,
    command: Reserve,
    lease: Reservation,
    funders: list[Account],
    now: int,
    *,
    tells: bool,
) -> Candidate:
    """Cut the hold to what the job's quotas allow it, find its payer, and let every gate speak."""
    if book.gated:
        roll_due(book, now)
        lane = lane_of(book, lease, now)
        cap = min(lane.cap, left_of_cap(book, lease, lane))
        lease.held = hold_wanted(lease, 0, 0, job_cap(lease, cap))
        lease.expires_at = lease_end(lease, now)
    payer = choose(funders, lease.held)
    lease.payer_id = payer.account_id
    reports: tuple[GateReport, ...] = ()
    if tells or not all_pass(book, payer, lease, command.fair_share, now):
        reports = evaluate(book, payer, funders, lease, command.fair_share, now)
    return Candidate(lease, payer, reports, funders)


def node_taken(book: Book, lease: Reservation, now: int) -> Refused | None:
    """Refuse a job a second lease on a node where it has one that lives, or a second without."""
    key = (lease.account_id, lease.job_id, lease.node)
    number, expires_at = book.on_nodes.get(key, (0, 0))
    known = book.reservations.get(number)
    if known is not None:
        expires_at = known.expires_at if known.state is ReservationState.ACTIVE else 0
    if expires_at <= now:
        return None
    name = ids.format_id(ids.RESERVATION, book.org.org_id, number)
    where = f"on node {lease.node}" if lease.node else "without a node"
    other = "" if lease.node else " Name a node for each lease of a job that runs on several."
    return Refused(
        Reason.RESERVATION_EXISTS,
        f"Job {lease.job_id} of {lease.account} already has reservation {name} {where}. Go on with "
        f"that one; or settle or cancel it first, or let it lapse.{other}",
        {"job_id": lease.job_id, "node": lease.node, "reservation_id": name},
    )


def find_open(book: Book, path: str, now: int) -> Account | Refused:
    """The account at a path, unless it or one above it is suspended."""
    account = find(book, path)
    if isinstance(account, Account) and (refused := suspension(book, path, now)):
        return refused
    return account


def draft(
    command: Reserve, account: Account, payer: Account, price: Price, now: int
) -> Reservation:
    """The lease as asked for, with the price pinned and nothing held yet."""
    return Reservation(
        reservation_id=0,
        account=account.path,
        account_id=account.account_id,
        payer_id=payer.account_id,
        job_id=command.job_id,
        gpu_type=command.gpu_type,
        milli_gpus=command.milli_gpus,
        region=command.region,
        node=command.node,
        price=price.credits_per_gpu_hour,
        price_id=price.price_id,
        window_ms=command.window_ms,
        escrow_windows=command.escrow_windows,
        max_amount=command.max_amount,
        admitted_at=now,
        expires_at=now,
        beat_at=now,
        exhaustion=command.exhaustion,
        grace_ms=min(command.grace_ms, command.window_ms),
        overdraft=command.overdraft,
        metadata=command.metadata,
    )


def settle(book: Book, command: Settle, now: int) -> Closed | Refused:
    """The job ended: charge what was used and release the rest of the hold."""
    lease = book.reservations.get(command.reservation_id)
    if lease is None:
        return LEASE_UNKNOWN
    payer = book.accounts[lease.payer_id]
    roll(book, payer, now)
    seq = own_seq(lease, command.seq)
    reported = lease.used_ms if command.used_ms is None else command.used_ms
    if lease.state is ReservationState.EXPIRED:
        charge_late(book, payer, lease, seq, reported, now)
        return replace(closed(lease, 0), flagged=LAPSED)
    if lease.state is not ReservationState.ACTIVE:
        return ended(lease)
    used_ms, flag = believable(lease, reported, now)
    used_ms, flag = within_authorised(book, payer, lease, used_ms, flag, now)
    book.touch(lease)
    book.touch(payer)
    lease.seq = seq
    due = cost(lease.rate, used_ms) - lease.settled
    covered = min(due, lease.held + max(payer.spendable, 0))
    released, ahead = max(lease.held - due, 0), (0, lease.promised)  # one row says both
    plan = plan_slice(book, payer, lease, used_ms, covered, now)
    if book.gated:
        count_slice(book, lease, due, sum(ahead), now, now)
    post_charge(book, payer, lease, due=due, covered=covered, ahead=ahead, now=now, plan=plan)
    lease.used_ms = used_ms
    lease.beat_at = now
    end = close(book, payer, lease, ReservationState.SETTLED, now, seq=seq)
    return replace(end, released=released, flagged=flag)


def own_seq(lease: Reservation, asked: int | None) -> int:
    """The seq of a report that ends a job: the one it was given, if no report had it before.

    It is the last word on what was used, so a seq that is taken is no reason to leave it out: it is
    then the next one after the last.
    """
    return lease.seq + 1 if asked is None or asked <= lease.seq else asked


def cancel(book: Book, command: Cancel, now: int) -> Closed | Refused:
    """The job never started: release the hold."""
    lease = book.reservations.get(command.reservation_id)
    if lease is None:
        return LEASE_UNKNOWN
    payer = book.accounts[lease.payer_id]
    roll(book, payer, now)
    if lease.state is not ReservationState.ACTIVE:
        return ended(lease)
    if lease.used_ms:
        return Refused(
            Reason.RESERVATION_STARTED,
            f"The job has run for {lease.used_ms} ms; settle the reservation instead.",
            {"used_ms": lease.used_ms},
        )
    return close(book, payer, lease, ReservationState.CANCELED, now, seq=0)


def close(  # what ends it, and what it is from then on
    book: Book, payer: Account, lease: Reservation, state: ReservationState, now: int, *, seq: int
) -> Closed:
    """End a live lease and give its hold back, by the report ``seq`` if it was one."""
    released = release(book, payer, lease, now, now, seq=seq)
    lease.state = state
    lease.ended_at = now
    lease.expires_at = now
    payer.version += 1
    drop_claims(book, payer, lease, now)
    collect(book, payer, now)
    return closed(lease, released)


def closed(lease: Reservation, released: int) -> Closed:
    """The final state of a lease."""
    return Closed(lease.reservation_id, lease.state, lease.settled, released, lease.used_ms)


def ended(lease: Reservation) -> Refused:
    """Refuse what only a live lease can do."""
    return Refused(
        Reason.RESERVATION_ENDED,
        f"The reservation is {lease.state.name.lower()} already.",
        {"state": lease.state.name.lower()},
    )


def touches_reserve(command: Reserve) -> Touches:
    """The accounts that may pay, the prices that may hold, and the other leases of the job."""
    owners = lineage(command.account)
    return Touches(
        paths=owners,
        prices=[(command.gpu_type, command.region, owner) for owner in (*owners, "")],
        jobs=((command.account, command.job_id, command.gpu_type),),
        from_cache=True,
    )


def touches_explained(command: Explain) -> Touches:
    """What the reserve would touch, all of it read: nothing is saved that could be guarded."""
    return replace(touches_reserve(command.reserve), from_cache=False)


def ending_before(book: Book, command: Settle | Cancel) -> State | None:
    """Whose job the lease is for, and who pays."""
    lease = book.reservations.get(command.reservation_id)
    if lease is None:
        return None
    return {"account": lease.account, "payer": book.accounts[lease.payer_id].path}


def ending_after(org_id: int, outcome: Closed) -> tuple[str, State] | None:
    """How the lease was ended; None for a lapsed lease, which nobody ended."""
    if outcome.state is ReservationState.EXPIRED:
        return None
    return ids.format_id(ids.RESERVATION, org_id, outcome.reservation_id), {
        "state": outcome.state.name.lower(),
        "settled": format_credits(outcome.settled),
        "used_ms": outcome.used_ms,
    }


# Reserves are no administrative acts: the ledger is their record.
RULES: tuple[Rule, ...] = (
    Rule(Reserve, reserve, touches_reserve),
    Rule(Explain, explain, touches_explained),
    Rule(Settle, settle, touches_lease, "reservation.settle", ending_before, ending_after),
    Rule(Cancel, cancel, touches_lease, "reservation.cancel", ending_before, ending_after),
)
