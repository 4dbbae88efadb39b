"""Logs as lines of JSON: one for each request that is worth a line, and everything else.

Owns: what a line says. Heartbeats that went well are counted elsewhere, not logged.
Must not: write bodies, keys or secrets.
"""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Mapping
from typing import Any, TextIO

import msgspec

logger = logging.getLogger("gpucredits.api")
QUIET_ROUTES = frozenset({"/v1/heartbeats", "/healthz"})


class Seen:
    """What the log says of a request."""

    __slots__ = ("actor", "error", "reason", "route")

    def __init__(self) -> None:
        self.route = ""
        self.actor = ""
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
        "request_id": request_id,
        "method": scope["method"],
        "path": scope["path"],
        "route": seen.route,
        "status": status,
        "ms": round((time.perf_counter() - started) * 1_000, 2),
        "actor": seen.actor,
        "reason": seen.reason,
    }
    logger.log(level, "request", extra={"fields": line}, exc_info=seen.error)


class JsonLines(logging.Formatter):
    """One JSON object on one line for each record, with the fields it was given."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        line: dict[str, Any] = {
            "at": self.formatTime(record, "%Y-%m-%dT%H:%M:%S") + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            "logger": record.name,
            **getattr(record, "fields", {}),
        }
        if record.exc_info is not None and record.exc_info[1] is not None:
            line["error"] = "".join(traceback.format_exception(record.exc_info[1]))
        return msgspec.json.encode(line, enc_hook=str).decode()


def log_json(stream: TextIO) -> None:
    """Send every record of the process to a stream as JSON."""
    handler = logging.StreamHandler(stream)
    formatter = JsonLines()
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    for noisy in ("httpx", "asyncio", "uvicorn.error"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
