"""What the edge is given: the service's parts, in one bundle.

Must not: do anything itself; app.py fills it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gpucredits.service.keys import Keyring
from gpucredits.service.ledger import Ledger
from gpucredits.service.limiter import Limiter
from gpucredits.service.orgs import Directory
from gpucredits.service.pools import GpuPools
from gpucredits.service.queue import Line
from gpucredits.service.reads import Reads
from gpucredits.service.request_counts import RequestCounts
from gpucredits.store.connection import Pool
from gpucredits.store.primary import Primary


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
    line: Line
    counts: RequestCounts = field(default_factory=RequestCounts)
