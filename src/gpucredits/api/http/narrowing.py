"""Answers narrowed to what the caller's key may see: the one place for all of them.

Owns: what is told of accounts outside a key's scope. Their names become ``an account above`` (or
``another account`` beside it), their numbers and the ids of their grants become null; the instant
when a gate clears stays. Answers are made and stored whole, and narrowed whenever they are shown,
so that a replay tells each reader what that reader may see.
Must not: decide what exists for a key (scope does).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from gpucredits.core.account import check_path, is_below
from gpucredits.wire.access.keys import AuditAnswer
from gpucredits.wire.billing.price import PriceAnswer
from gpucredits.wire.billing.request import RequestAnswer
from gpucredits.wire.billing.usage import IdleGuardAnswer, UsageResults
from gpucredits.wire.dispatch.queue import QueueAnswer
from gpucredits.wire.gate import GateAnswer
from gpucredits.wire.ledger.account import SpendableThrough
from gpucredits.wire.ledger.credit import GrantAnswer, TransferShown
from gpucredits.wire.ledger.entry import EntryAnswer
from gpucredits.wire.ledger.heartbeat import BeatAnswer, HeartbeatsAnswer
from gpucredits.wire.ledger.reservation import PayerShare, ReservationAnswer
from gpucredits.wire.limits.admission import AdmissionAnswer, FunderAnswer
from gpucredits.wire.limits.limits import LimitAnswer
from gpucredits.wire.problem import Problem
from gpucredits.wire.reconciliation.comparison import ReconcilePolicyAnswer
from gpucredits.wire.reconciliation.lost_work import LossTermsAnswer

ABOVE = "an account above"
BESIDE = "another account"
PLAIN = (HeartbeatsAnswer, BeatAnswer, UsageResults)  # hot, and about the caller's leases only
OWN_NUMBERS = frozenset(  # of the request itself, and when it may be made again
    {"scope", "gate", "name", "requested", "needed", "clears_at", "clears_in_ms", "funding"}
)
_PATH = re.compile(r"[a-z0-9][a-z0-9._-]*(?:/[a-z0-9][a-z0-9._-]*){0,2}")
_QUEUE_ID = re.compile(r"\bque_\w+")
_TELLING = {
    "account_suspended": "An account above is suspended and admits nothing.",
    "account_delinquent": (
        "A statement of an account above is unpaid past its due date, so nothing is admitted; "
        "paying what is overdue resumes it."
    ),
    "overdraft_too_large": "No account that may pay for this job lets it overdraw by so much.",
    "payer_invalid": (
        "The payer cannot pay for this job: a payer is an account of the job's funding chain, or "
        "one at or above the job's account in the scope of your key."
    ),
    "loss_refused": (
        "No more lost work is refunded now: an account above has a cap for 30 days "
        "(hours_per_account) on all accounts below it. Claim later, or ask staff of the system to "
        "raise it."
    ),
    "rate_limited": "An account above makes more requests than it may. Ask again later.",
}


def narrowed(answer: Any, scope: str) -> Any:
    """The answer as a key of this scope may see it; a whole org's or the system's key sees all."""
    if "/" in scope and not isinstance(answer, PLAIN):
        _walk(answer, scope)
    return answer


def _walk(value: Any, scope: str) -> None:
    """Narrow every part of an answer, the innermost first."""
    if isinstance(value, Struct):
        for name in value.__struct_fields__:
            part = getattr(value, name)
            if isinstance(part, Struct | list):
                _walk(part, scope)
        for shape in type(value).__mro__:
            if shape in _RULES:
                _RULES[shape](value, scope)
    elif isinstance(value, list):
        for part in value:
            _walk(part, scope)


def told(path: str, scope: str) -> str:
    """An account as a key may know it: by its path, or as one above or beside what it sees."""
    if not is_foreign(path, scope):
        return path
    return ABOVE if is_below(scope, path) else BESIDE


def is_foreign(path: object, scope: str) -> bool:
    """Whether a text is the path of an account that a key does not see."""
    if not isinstance(path, str) or is_below(path, scope):
        return False
    try:
        check_path(path)
    except ValueError:
        return False
    return True


def mentions_above(text: str, scope: str) -> bool:
    """Whether a sentence names an account above a scope."""
    words = (found.group().rstrip(".") for found in _PATH.finditer(text))
    return any(word != scope and is_below(scope, word) for word in words)


def _gate(gate: GateAnswer, scope: str) -> None:
    if not is_foreign(gate.account, scope):
        return
    gate.account = told(gate.account, scope)
    gate.limit = gate.current = None
    if gate.gate == "fair_share" and not mentions_above(gate.sentence, scope):
        return  # it speaks of the pool
    gate.never_because = None
    if gate.passes:
        gate.sentence = f"An account above passes its {gate.name}."
        return
    clears = f" It would clear at {gate.clears_at}." if gate.clears_at else ""
    gate.sentence = f"An account above has no room for this: its {gate.name} is too low.{clears}"


def _problem(problem: Problem, scope: str) -> None:
    if problem.reason == "account_unknown":
        return  # it tells the caller's own words, and the same of all that is out of sight
    numbers = problem.numbers or {}
    if is_foreign(numbers.get("account"), scope):
        problem.account = told(str(numbers["account"]), scope)
        problem.available = None
        kept = {name: value for name, value in numbers.items() if name in OWN_NUMBERS}
        problem.numbers = {**kept, "account": problem.account}
        problem.detail = _sentence(problem.reason, problem.gates)
    elif mentions_above(problem.detail, scope):
        problem.detail = _sentence(problem.reason, problem.gates)
    if problem.numbers is not None and is_foreign(problem.numbers.get("payer"), scope):
        problem.numbers["payer"] = told(str(problem.numbers["payer"]), scope)
    if problem.numbers is not None and mentions_above(str(problem.numbers.get("set_by")), scope):
        problem.numbers["set_by"] = ABOVE
        problem.detail = (  # the bound itself is told: it says what to ask for
            f"This lease could last {numbers['requested_seconds']} seconds without a report (the "
            f"window and its escrow windows); {ABOVE} allows at most "
            f"{numbers['window_max_seconds']}. Ask for a shorter window or fewer escrow windows."
        )
    if problem.limit is not None and is_foreign(problem.limit.name, scope):
        problem.limit.name = told(problem.limit.name, scope)


def _sentence(reason: str, gates: list[GateAnswer] | None) -> str:
    """Why not, without a name: what the first gate that is closed says, or the reason."""
    closed = [gate.sentence for gate in gates or () if not gate.passes]
    if closed:
        return closed[0]
    return _TELLING.get(reason, "An account above does not allow this.")


def _admission(answer: AdmissionAnswer, scope: str) -> None:
    if answer.payer is not None and is_foreign(answer.payer, scope):
        answer.payer = told(answer.payer, scope)
        answer.grants = []
    if mentions_above(answer.detail, scope):
        answer.detail = (
            f"{answer.account} would be admitted: {ABOVE} would hold {answer.held} credits for it."
            if answer.admitted
            else _sentence(str(answer.reason), answer.gates)
        )


def _funder(funder: FunderAnswer, scope: str) -> None:
    if is_foreign(funder.account, scope):
        funder.account = told(funder.account, scope)
        funder.funding = funder.spendable = funder.can_pay = None


def _through(through: SpendableThrough, scope: str) -> None:
    if is_foreign(through.account, scope):
        through.account = told(through.account, scope)
        through.spendable = None


def _reservation(lease: ReservationAnswer, scope: str) -> None:
    lease.payer = told(lease.payer, scope)


def _payer(share: PayerShare, scope: str) -> None:
    share.account = told(share.account, scope)


def _limit(limit: LimitAnswer, scope: str) -> None:
    if limit.account and is_foreign(limit.account, scope):
        limit.account = told(limit.account, scope)
        limit.limit_id = limit.cap = limit.used = limit.left = None
        if limit.kind == "budget":
            limit.name = "budget"


def _entry(entry: EntryAnswer, scope: str) -> None:
    if is_foreign(entry.debit_account, scope):
        entry.grant_id = None  # a transfer names the grant that it left
    entry.debit_account = told(entry.debit_account, scope)
    entry.credit_account = told(entry.credit_account, scope)


def _transfer(transfer: TransferShown, scope: str) -> None:
    transfer.source = told(transfer.source, scope)
    transfer.target = told(transfer.target, scope)


def _grant(grant: GrantAnswer, _: str) -> None:
    grant.origin_grant_id = None  # it may be of an account that the key does not see


def _audit(act: AuditAnswer, scope: str) -> None:
    if "/" in act.resource or is_below(scope, act.resource):  # no id of a lease or a key
        act.resource = told(act.resource, scope)
    for state in (act.old, act.new):
        if isinstance(state, dict):
            for name in ("account", "payer", "to", "scope", "taken_from"):
                if is_foreign(state.get(name), scope):
                    state[name] = told(state[name], scope)


def _price(price: PriceAnswer, scope: str) -> None:
    if price.account:
        price.account = told(price.account, scope)


def _request(request: RequestAnswer, scope: str) -> None:
    if request.taken_from:
        request.taken_from = told(request.taken_from, scope)


def _guard(guard: IdleGuardAnswer, scope: str) -> None:
    if guard.source:
        guard.source = told(guard.source, scope)


def _set_for(terms: ReconcilePolicyAnswer | LossTermsAnswer, scope: str) -> None:
    if terms.set_for:
        terms.set_for = told(terms.set_for, scope)


def _queue(queued: QueueAnswer, scope: str) -> None:
    if mentions_above(queued.sentence, scope):
        queued.sentence = _why_queued(queued)
    own = queued.queue_id
    queued.sentence = _QUEUE_ID.sub(
        lambda found: own if found.group() == own else "another request", queued.sentence
    )


def _why_queued(queued: QueueAnswer) -> str:
    """Why a request waits, or what ended it, without a name."""
    if queued.state != "waiting":
        return f"It was {queued.state}: {ABOVE} does not allow it."
    why = "is suspended" if queued.waits_for == "suspension" else "has no room for it"
    return f"It waits for {queued.waits_for or 'its turn'}: {ABOVE} {why}."


_RULES: dict[type, Callable[[Any, str], None]] = {
    GateAnswer: _gate,
    Problem: _problem,
    AdmissionAnswer: _admission,
    FunderAnswer: _funder,
    SpendableThrough: _through,
    ReservationAnswer: _reservation,
    PayerShare: _payer,
    LimitAnswer: _limit,
    EntryAnswer: _entry,
    TransferShown: _transfer,
    GrantAnswer: _grant,
    AuditAnswer: _audit,
    PriceAnswer: _price,
    RequestAnswer: _request,
    QueueAnswer: _queue,
    IdleGuardAnswer: _guard,
    ReconcilePolicyAnswer: _set_for,
    LossTermsAnswer: _set_for,
}
