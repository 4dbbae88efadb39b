"""How long leases may last without a report: the server's bound, and the bounds of its pools.

Owns: the bounds that are not rows of an org; whoever fills a book passes them in.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gpucredits.core import bounds


@dataclass(slots=True)
class WindowBounds:
    """The longest lease of this server in ms, and of pools by (GPU type, region)."""

    server_ms: int = bounds.WINDOW_MS_MAX
    pools: dict[tuple[str, str], int] = field(default_factory=dict)
