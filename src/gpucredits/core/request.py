"""Budget requests: a user asks for more with a reason, somebody above decides.

Owns: the states of a request and what leads from one to the next, and the one command that an
approval stands for. A request is open until it is decided, canceled or out of time.
Must not: know who may decide (the edge does), or carry the command out (the ledger does).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final

from gpucredits.core import bounds, ids
from gpucredits.core.account import Account
from gpucredits.core.authority import Authority
from gpucredits.core.book import Book
from gpucredits.core.command import AddBoost, Issue, SetBudget, Transfer
from gpucredits.core.gate import GateUnit, quantity, quantity_of
from gpucredits.core.period import Calendar
from gpucredits.core.quota import Dimension
from gpucredits.core.reasons import Reason, Refused
from gpucredits.core.rules.credit.funding import find

OPEN_US: Final = 14 * bounds.DAY_US  # an open request that nobody decided on ends after so long
OPEN_MAX: Final = 20  # open requests of one account


class RequestKind(IntEnum):
    """What is asked for more of."""

    CREDITS = 0
    QUOTA = 1
    RATE_LIMIT = 2
    BUDGET = 3


class RequestState(IntEnum):
    """Where a request stands. An approving one is decided and on its way into the ledger."""

    OPEN = 0
    APPROVING = 1
    APPROVED = 2
    DECLINED = 3
    CANCELED = 4
    EXPIRED = 5


class RequestUnit(IntEnum):
    """What the amount of a request counts: micro-credits, or things."""

    CREDITS = 0
    GPUS = 1
    JOBS = 2


UNITS: Final = {
    Dimension.CONCURRENT_GPUS: RequestUnit.GPUS,
    Dimension.CONCURRENT_JOBS: RequestUnit.JOBS,
}
GATE_UNITS: Final = {
    RequestUnit.CREDITS: GateUnit.CREDITS,
    RequestUnit.GPUS: GateUnit.GPUS,
    RequestUnit.JOBS: GateUnit.JOBS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTerms:
    """How much, how fast more of it comes (rate limits only), and until when.

    Credits may be taken from another account of the org; what moves keeps its own windows.
    """

    amount: int
    refill_per_hour: int = 0
    ends_at: int = bounds.NEVER_US
    taken_from: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRequest:
    """A request as it stands.

    ``target_id`` is the quota or bucket to be raised, ``budget`` the name of the budget. The
    ``given`` terms are what was approved, by a key of the scope ``decided_from``. ``attempt``
    numbers approvals, because one that the ledger refused opens the request again; ``refusal`` then
    says why.
    """

    org_id: int
    request_id: int
    account: str
    kind: RequestKind
    unit: RequestUnit = RequestUnit.CREDITS
    target_id: int = 0
    budget: str = ""
    amount: int
    refill_per_hour: int = 0
    ends_at: int = bounds.NEVER_US
    reason: str
    asked_by: str
    asked_at: int
    expires_at: int
    state: RequestState = RequestState.OPEN
    decided_by: str = ""
    decided_from: Authority = Authority.SYSTEM
    decided_at: int = 0
    note: str = ""
    given_amount: int = 0
    given_refill_per_hour: int = 0
    given_ends_at: int = bounds.NEVER_US
    taken_from: str = ""
    attempt: int = 0
    result: str = ""
    refusal: str = ""

    @property
    def key(self) -> str:
        """The idempotency key of what this approval does; no caller's key has a space in it."""
        return f"request {self.request_id} {self.attempt}"

    @property
    def asked(self) -> RequestTerms:
        """What was asked for."""
        return RequestTerms(
            amount=self.amount, refill_per_hour=self.refill_per_hour, ends_at=self.ends_at
        )

    @property
    def given(self) -> RequestTerms:
        """What was approved."""
        return RequestTerms(
            amount=self.given_amount,
            refill_per_hour=self.given_refill_per_hour,
            ends_at=self.given_ends_at,
            taken_from=self.taken_from,
        )

    def shown(self, amount: int) -> str:
        """An amount of this request as people write it."""
        return quantity(amount, GATE_UNITS[self.unit])


def state_at(ask: BudgetRequest, now: int) -> RequestState:
    """Where a request stands at an instant: its time may be over, written down or not."""
    if ask.state is RequestState.OPEN and ask.expires_at <= now:
        return RequestState.EXPIRED
    return ask.state


def aim(ask: BudgetRequest, book: Book) -> BudgetRequest | Refused:
    """Find what a new request is about; its amount is given in millionths until its unit is known.

    A quota or rate limit must be the account's own: those above ask for theirs.
    """
    account = find(book, ask.account)
    if isinstance(account, Refused):
        return account
    if ask.kind is RequestKind.QUOTA:
        return aim_at_quota(ask, account, book)
    if ask.kind is RequestKind.RATE_LIMIT:
        bucket = book.limits.buckets.get(account.account_id)
        if bucket is None:
            return no_limit(ask.account, "rate limit")
        return replace(ask, target_id=bucket.bucket_id)
    return ask


def aim_at_quota(ask: BudgetRequest, account: Account, book: Book) -> BudgetRequest | Refused:
    """Find the quota that a new request is about, and what it counts."""
    quotas = book.limits.quotas.get(account.account_id, ())
    quota = next((each for each in quotas if each.quota_id == ask.target_id), None)
    if quota is None or quota.ended_at:
        return no_limit(ask.account, "such quota")
    unit = UNITS.get(quota.dimension, RequestUnit.CREDITS)
    if unit is RequestUnit.CREDITS:
        return ask
    try:
        amount = quantity_of(ask.amount, GATE_UNITS[unit])
    except ValueError as error:
        return Refused(Reason.LIMIT_INVALID, f"amount {error}.", {"account": ask.account})
    return replace(ask, unit=unit, amount=amount)


def no_limit(account: str, what: str) -> Refused:
    """Refuse to raise what is not there."""
    return Refused(Reason.LIMIT_UNKNOWN, f"{account} has no {what}.", {"account": account})


def check_new(account: str, terms: RequestTerms, *, open_now: int, now: int) -> Refused | None:
    """Refuse a request that could never be approved, or one too many."""
    if terms.ends_at <= now:
        return ended(account)
    if open_now >= OPEN_MAX:
        return Refused(
            Reason.REQUESTS_FULL,
            f"{account} already has {OPEN_MAX} open requests; cancel one, or wait for a decision.",
            {"account": account, "limit": OPEN_MAX},
        )
    return None


def approve(  # which request, on which terms, and who says so
    ask: BudgetRequest,
    terms: RequestTerms,
    *,
    actor: str,
    note: str,
    now: int,
    by: Authority = Authority.SYSTEM,
) -> BudgetRequest | Refused:
    """Decide for it, on these terms; the ledger has the last word."""
    if wrong := not_open(ask, now):
        return wrong
    if terms.ends_at <= now:
        return ended(ask.account)
    return replace(
        ask,
        state=RequestState.APPROVING,
        decided_by=actor,
        decided_from=by,
        decided_at=now,
        note=note,
        given_amount=terms.amount,
        given_refill_per_hour=terms.refill_per_hour,
        given_ends_at=terms.ends_at,
        taken_from=terms.taken_from,
        attempt=ask.attempt + 1,
        refusal="",
    )


def close(
    ask: BudgetRequest, state: RequestState, *, actor: str, note: str, now: int
) -> BudgetRequest | Refused:
    """Decline or cancel it."""
    if wrong := not_open(ask, now):
        return wrong
    return replace(ask, state=state, decided_by=actor, decided_at=now, note=note)


def applied(ask: BudgetRequest, result: str) -> BudgetRequest:
    """The ledger has carried it out."""
    return replace(ask, state=RequestState.APPROVED, result=result)


def reopened(ask: BudgetRequest, refusal: str) -> BudgetRequest:
    """The ledger has refused it: it is open again, with what was said."""
    return replace(
        ask, state=RequestState.OPEN, decided_by="", decided_at=0, note="", refusal=refusal
    )


def expired(ask: BudgetRequest) -> BudgetRequest:
    """Write down that its time is over; it was over at that instant."""
    return replace(ask, state=RequestState.EXPIRED, decided_at=ask.expires_at)


def not_open(ask: BudgetRequest, now: int) -> Refused | None:
    """Refuse to decide twice."""
    state = state_at(ask, now)
    if state is RequestState.OPEN:
        return None
    word = state.name.lower()
    return Refused(
        Reason.REQUEST_STATE,
        f"The request is {word}; only an open one can be decided or canceled.",
        {"account": ask.account, "state": word},
    )


def ended(account: str) -> Refused:
    """Refuse an end that has passed."""
    return Refused(
        Reason.WINDOW_ENDED,
        "It would end before it begins: ends_at must be later than now.",
        {"account": account},
    )


def command_of(ask: BudgetRequest) -> Issue | Transfer | AddBoost | SetBudget:
    """What an approval does."""
    terms = ask.given
    match ask.kind:
        case RequestKind.CREDITS:
            return credit_command(ask)
        case RequestKind.QUOTA | RequestKind.RATE_LIMIT:
            return AddBoost(
                target_id=ask.target_id,
                amount=terms.amount,
                refill_per_hour=terms.refill_per_hour,
                ends_at=terms.ends_at,
                note=ask.reason,
                by=ask.decided_from,
            )
        case RequestKind.BUDGET:
            return budget_command(ask)


def credit_command(ask: BudgetRequest) -> Issue | Transfer:
    """New credits, or those of another account."""
    terms = ask.given
    label = {"request": ids.format_id(ids.REQUEST, ask.org_id, ask.request_id)}
    if terms.taken_from:
        return Transfer(
            source=terms.taken_from, target=ask.account, amount=terms.amount, metadata=label
        )
    return Issue(account=ask.account, amount=terms.amount, expires_at=terms.ends_at, metadata=label)


def budget_command(ask: BudgetRequest) -> SetBudget:
    """The budget with its new allowance; one that is new is monthly in UTC."""
    terms = ask.given
    named = {"allowance"} if terms.ends_at >= bounds.NEVER_US else {"allowance", "ends_at"}
    return SetBudget(
        account=ask.account,
        name=ask.budget,
        allowance=terms.amount,
        calendar=Calendar.MONTH,
        ends_at=terms.ends_at,
        named=frozenset(named),
    )
