"""What the edge is given: the service's parts, in one bundle.

Must not: do anything itself; app.py fills it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gpucredits.service.access.keys import Keyring
from gpucredits.service.dispatch.pools import GpuPools
from gpucredits.service.dispatch.queue import RequestQueue
from gpucredits.service.limits.limiter import Limiter
from gpucredits.service.reads.books import Reads
from gpucredits.service.reads.orgs import Directory
from gpucredits.service.reads.request_counts import RequestCounts
from gpucredits.service.write.ledger import Ledger
from gpucredits.store.database.connection import Pool
from gpucredits.store.database.primary import Primary


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Doors to the ledger, the reads, the keys and the limits on requests."""

    pool: Pool
    primary: Primary
    ledger: Ledger
    reads: Reads
    keyring: Keyring
    directory: Directory
    limiter: Limiter
    gpu_pools: GpuPools
    line: RequestQueue
    counts: RequestCounts = field(default_factory=RequestCounts)
