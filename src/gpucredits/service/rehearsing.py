"""What a reserve into a pool would be told now, with nothing left behind.

Owns: dry runs of reserves that go through the queue.
"""

from __future__ import annotations

from dataclasses import replace

from gpucredits.core.command import Reserve
from gpucredits.core.outcome import Outcome
from gpucredits.service.ledger import Request
from gpucredits.service.queue import Wish
from gpucredits.service.services import Services
from gpucredits.store.dispatch import OpenTicket


async def rehearsed(services: Services, org_id: int, wish: Wish) -> Outcome:
    """The lease or the refusal that a reserve would get if it came now and did not wait."""
    command = await with_verdict(services, org_id, wish)
    return await services.ledger.submit(org_id, Request(command), dry_run=True)


async def with_verdict(services: Services, org_id: int, wish: Wish) -> Reserve:
    """A reserve with what its pool would say of it now."""
    asked = wish.reserve
    pool = services.gpu_pools.find(asked.gpu_type, asked.region)
    if pool is None or not pool.gates:
        return asked
    verdict = await services.gpu_pools.verdict(pool, _ticket(org_id, wish))
    return replace(asked, fair_share=verdict)


def _ticket(org_id: int, wish: Wish) -> OpenTicket:
    return OpenTicket(
        org_id=org_id,
        queue_id=0,
        account=wish.reserve.account,
        gpus=wish.reserve.gpu_count,
        cpus=wish.cpus,
        memory=wish.memory,
        priority=wish.priority,
        gang="",
        gang_size=1,
        expected_ms=wish.expected_ms,
        is_patient=False,
        allow_partial=wish.allow_partial,
        gpus_max=0,
        held_by="",
        retry_at=0,
        submitted_at=0,
        state=0,
        granted=0,
        position=0,
        reason="",
        needed=0,
        available=0,
        behind="",
        starts_at=0,
    )
