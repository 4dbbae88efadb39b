"""What the edge is given: the service's parts, in one bundle.

Must not: do anything itself; app.py fills it.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpucredits.service.keys import Keyring
from gpucredits.service.ledger import Ledger
from gpucredits.service.limiter import Limiter
from gpucredits.service.orgs import Directory
from gpucredits.service.pools import GpuPools
from gpucredits.service.queue import Line
from gpucredits.service.reads import Reads
from gpucredits.store.connection import Pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Doors to the ledger, the reads, the keys and the limits on requests."""

    pool: Pool
    ledger: Ledger
    reads: Reads
    keyring: Keyring
    directory: Directory
    limiter: Limiter
    gpu_pools: GpuPools
    line: Line
