"""What the edge is given: the service's parts, in one bundle.

The edge never sees the database: it names a use case, and ``Services.run`` carries the use case out
on the server's connections.
Must not: decide anything; app.py fills it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Concatenate, ParamSpec, TypeVar

from gpucredits.metering.pipeline import Pipeline
from gpucredits.metering.standing import ReadersStanding
from gpucredits.service.access.permissions import Keyring
from gpucredits.service.access.refusals import Refusals
from gpucredits.service.access.signing import SigningKeys
from gpucredits.service.dispatch.pools import GpuPools
from gpucredits.service.dispatch.queue import RequestQueue
from gpucredits.service.limits.limiter import Limiter
from gpucredits.service.reads.books import Reads
from gpucredits.service.reads.orgs import Directory
from gpucredits.service.reads.request_counts import RequestCounts
from gpucredits.service.reconciliation.passes import ReconcilerState
from gpucredits.service.write.ledger import Ledger
from gpucredits.store.database.connection import Pool
from gpucredits.store.database.primary import Primary

Given = ParamSpec("Given")
Result = TypeVar("Result")


class UseCases:
    """Carries out use cases of the service on the connections of one server."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def __call__(
        self,
        use_case: Callable[Concatenate[Pool, Given], Awaitable[Result]],
        *args: Given.args,
        **kwargs: Given.kwargs,
    ) -> Result:
        """The result of a use case, which takes the connections before its own arguments."""
        return await use_case(self._pool, *args, **kwargs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Doors to the ledger, the reads, the keys and the limits on requests."""

    run: UseCases
    primary: Primary
    ledger: Ledger
    reads: Reads
    keyring: Keyring
    directory: Directory
    limiter: Limiter
    gpu_pools: GpuPools
    queue: RequestQueue
    signing: SigningKeys
    refusals: Refusals
    pipeline: Pipeline | None = None
    counts: RequestCounts = field(default_factory=RequestCounts)
    reconciling: ReconcilerState = field(default_factory=ReconcilerState)
    event_readers: ReadersStanding = field(default_factory=ReadersStanding)
