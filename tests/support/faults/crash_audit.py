"""What the books must hold after the crashes, computed from the clients' history alone.

Owns: a model of balances and leases made from accepted calls, and the comparison with the server:
what is missing (lost), what is there twice or was never accepted (doubled), what differs.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime

import httpx

from gpucredits.client import Client
from gpucredits.core.money import parse_credits
from gpucredits.wire.ledger.reservation import ReservationAnswer
from support.faults.crash_arena import ACCOUNTS, PRICE, Arena
from support.faults.crash_load import WINDOW_S
from support.faults.history import ACCEPTED, REFUSED, UNAVAILABLE, UNRESOLVED, Asked

MS_PER_HOUR = 3_600_000
ORGS = [path for path in ACCOUNTS if "/" not in path]
REPLAYERS = 8


@dataclass(slots=True)
class Lease:
    """A lease as its client knows it."""

    account: str
    job_id: str
    gpus: int
    seq: int = 0
    used_ms: int = 0
    is_settled: bool = False

    def cost(self, used_ms: int) -> int:
        """Micro-credits for a time of use, cut to a whole number."""
        return self.gpus * parse_credits(PRICE) * used_ms // MS_PER_HOUR

    @property
    def charged(self) -> int:
        """What its use has cost."""
        return self.cost(self.used_ms)

    @property
    def held(self) -> int:
        """What is held for it."""
        if self.is_settled:
            return 0
        return self.cost(self.used_ms + WINDOW_S * 1_000) - self.charged


@dataclass(slots=True)
class Model:
    """Credits that came and went, and every lease, by accepted calls."""

    moved: Counter[str] = field(default_factory=Counter)
    leases: dict[str, Lease] = field(default_factory=dict)
    beats: Counter[str] = field(default_factory=Counter)

    def buckets(self) -> dict[str, tuple[int, int, int]]:
        """(available, reserved, spent) of every account."""
        held: Counter[str] = Counter()
        spent: Counter[str] = Counter()
        for lease in self.leases.values():
            held[lease.account] += lease.held
            spent[lease.account] += lease.charged
        return {
            path: (self.moved[path] - held[path] - spent[path], held[path], spent[path])
            for path in ACCOUNTS
        }

    def take(self, call: Asked) -> None:
        """Add an accepted call."""
        asked = json.loads(call.request or "{}")
        match call.kind:
            case "issue":
                self.moved[asked["account"]] += parse_credits(asked["amount"])
            case "transfer":
                self.moved[asked["from"]] -= parse_credits(asked["amount"])
                self.moved[asked["to"]] += parse_credits(asked["amount"])
            case "reserve":
                lease_id = call.body["reservation_id"]
                lease = Lease(asked["account"], asked["job_id"], asked["gpu_count"])
                self.leases[lease_id] = lease
            case "beat":
                [beat] = asked["beats"]
                self.beat(beat["reservation_id"], beat["seq"], beat["used_ms"])
            case "extend":
                self.beat(lease_of(call.path), asked["seq"], asked["used_ms"])
            case "settle":
                lease = self.leases[lease_of(call.path)]
                lease.is_settled = True
                lease.seq += 1  # the end of a job takes the next number
            case _:
                raise AssertionError(f"a call of no known kind: {call.kind}")

    def beat(self, lease_id: str, seq: int, used_ms: int) -> None:
        """Add an accepted heartbeat."""
        self.leases[lease_id].seq = seq
        self.leases[lease_id].used_ms = used_ms
        self.beats[lease_id] += 1


def lease_of(path: str) -> str:
    """The reservation in the path of a call about it."""
    return path.rpartition("/")[2].partition(":")[0]


@dataclass(slots=True)
class Audit:
    """What was found."""

    acknowledged: int = 0
    lost: int = 0
    doubled: int = 0
    ambiguous: int = 0
    resolved: int = 0
    found_done: int = 0
    refused: int = 0
    given_up: int = 0
    replayed: int = 0
    wrong: list[str] = field(default_factory=list)

    def text(self) -> str:
        """The figures in one line."""
        return (
            f"acknowledged {self.acknowledged}, lost {self.lost}, doubled {self.doubled}, "
            f"ambiguous {self.ambiguous}, resolved {self.resolved} "
            f"({self.found_done} had been done), refused {self.refused}, "
            f"unavailable {self.given_up}, equal answers on retry {self.replayed}"
        )


def audit(stage: Arena, asked: list[Asked]) -> Audit:
    """Compare the server with the history: first by reading, then by asking all again."""
    found = Audit()
    accepted = [call for call in asked if call.end == ACCEPTED]
    found.acknowledged = len(accepted)
    found.refused = sum(call.end == REFUSED for call in asked)
    found.given_up = sum(call.end == UNAVAILABLE for call in asked)
    doubtful = [call for call in asked if call.was_ambiguous]
    found.ambiguous = len(doubtful)
    found.resolved = sum(call.end in (ACCEPTED, REFUSED) for call in doubtful)
    found.found_done = sum(had_been_done(call) for call in doubtful)
    found.wrong += [
        f"unresolved: {call.kind} {call.key}" for call in asked if call.end == UNRESOLVED
    ]
    model = Model()
    for call in accepted:
        model.take(call)
    with stage.client() as client:
        count_grants(client, found, accepted)
        compare_leases(client, found, model)
        compare_balances(client, found, model)
        before = entries_count(client)
        ask_again(stage, found, [call for call in accepted if call.key])
        compare_balances(client, found, model)
        if (after := entries_count(client)) != before:
            found.doubled += abs(after - before)
            found.wrong.append(f"asking again moved the entries from {before} to {after}")
    return found


def had_been_done(call: Asked) -> bool:
    """Whether an attempt whose answer was lost had in fact been carried out."""
    if call.end != ACCEPTED:
        return False
    body = call.body
    if call.kind in ("beat", "extend"):
        return bool((body["results"][0] if call.kind == "beat" else body).get("duplicate"))
    at = body.get("created_at") or body.get("admitted_at")
    if at is None:
        return False
    return datetime.fromisoformat(at).timestamp() < call.sent_at


def counted(found: Audit, kind: str, expected: Iterable[str], there: Counter[str]) -> None:
    """Count what is missing, and what is there twice or was never accepted."""
    wanted = set(expected)
    missing = wanted - there.keys()
    copies = [name for name, count in there.items() if count > 1 or name not in wanted]
    found.lost += len(missing)
    found.doubled += len(copies)
    found.wrong += [f"{kind} lost: {name}" for name in sorted(missing)]
    found.wrong += [f"{kind} doubled or never accepted: {name}" for name in sorted(copies)]


def count_grants(client: Client, found: Audit, accepted: list[Asked]) -> None:
    """Every accepted issue made one grant, which carries its key."""
    there = Counter(
        grant.metadata["key"]
        for org in ORGS
        for grant in client.grants(org, tree=True)
        if grant.origin_grant_id is None
    )
    keys = [call.key or "" for call in accepted if call.kind == "issue"]
    counted(found, "grant", keys, there)


def compare_leases(client: Client, found: Audit, model: Model) -> None:
    """Every accepted reserve made one lease, which stands where its last accepted call left it."""
    leases = [lease for org in ORGS for lease in client.reservations(account=org, tree=True)]
    counted(
        found,
        "lease",
        (lease.job_id for lease in model.leases.values()),
        Counter(lease.job_id for lease in leases),
    )
    for lease in leases:
        known = model.leases.get(lease.reservation_id)
        if known is not None:
            compare_lease(found, known, lease)


def compare_lease(found: Audit, known: Lease, lease: ReservationAnswer) -> None:
    """One lease and its model."""
    if lease.seq < known.seq or (known.is_settled and lease.state == "active"):
        found.lost += 1
    elif lease.seq > known.seq or (lease.state != "active" and not known.is_settled):
        found.doubled += 1
    state = "settled" if known.is_settled else "active"
    expected = (state, known.seq, known.used_ms, known.charged, known.held)
    seen = (
        lease.state,
        lease.seq,
        lease.used_ms,
        parse_credits(lease.settled),
        parse_credits(lease.held),
    )
    if seen != expected:
        found.wrong.append(f"lease {lease.job_id}: {seen} instead of {expected}")


def compare_balances(client: Client, found: Audit, model: Model) -> None:
    """Every account holds what the accepted calls make of it."""
    for path, expected in model.buckets().items():
        balance = client.balance(path)
        texts = (balance.available, balance.reserved, balance.spent)
        seen = tuple(parse_credits(text) for text in texts)
        if seen != expected:
            found.wrong.append(f"balance of {path}: {seen} instead of {expected}")


def entries_count(client: Client) -> int:
    """How many pairs the ledger holds."""
    return sum(1 for org in ORGS for _ in client.entries(account=org, tree=True))


def ask_again(stage: Arena, found: Audit, accepted: list[Asked]) -> None:
    """Send every accepted write with its key again: each must get the answer it got before."""
    headers = {
        "authorization": f"Bearer {stage.server.admin_secret}",
        "content-type": "application/json",
    }
    with httpx.Client(base_url=stage.server.url, headers=headers, timeout=30.0) as http:

        def is_equal(call: Asked) -> bool:
            key = {"idempotency-key": call.key or ""}
            answer = http.post(call.path, content=call.request, headers=key)
            return answer.status_code in (200, 201) and answer.text == call.answer

        with ThreadPoolExecutor(REPLAYERS) as threads:
            equal = list(threads.map(is_equal, accepted))
    found.replayed = sum(equal)
    changed = [call for call, is_same in zip(accepted, equal, strict=True) if not is_same]
    found.lost += len(changed)
    found.wrong += [f"another answer on retry: {call.kind} {call.key}" for call in changed]
