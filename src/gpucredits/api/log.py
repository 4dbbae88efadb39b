"""One line of JSON for each request that is worth a line.

Owns: what a line says. Heartbeats that went well are counted elsewhere, not logged.
Must not: write bodies, keys or secrets.
"""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Mapping
from typing import Any

import msgspec

logger = logging.getLogger("gpucredits.api")
QUIET_ROUTES = frozenset({"/v1/heartbeats", "/healthz"})


class Seen:
    """What the log says of a request."""

    __slots__ = ("actor", "error", "reason", "route")

    def __init__(self) -> None:
        self.route = ""
        self.actor = 0
        self.reason = ""
        self.error: Exception | None = None


def log_request(
    scope: Mapping[str, Any], seen: Seen, *, status: int, request_id: str, started: float
) -> None:
    """Write the line of a request."""
    if status < 400 and seen.route in QUIET_ROUTES:
        return
    level = logging.ERROR if status == 500 else logging.INFO
    if not logger.isEnabledFor(level):
        return
    line: dict[str, Any] = {
        "event": "request",
        "request_id": request_id,
        "method": scope["method"],
        "path": scope["path"],
        "route": seen.route,
        "status": status,
        "ms": round((time.perf_counter() - started) * 1_000, 2),
        "actor": f"key:{seen.actor}" if seen.actor else "",
        "reason": seen.reason,
    }
    if seen.error is not None:
        line["error"] = "".join(traceback.format_exception(seen.error))
    logger.log(level, "%s", msgspec.json.encode(line).decode())
