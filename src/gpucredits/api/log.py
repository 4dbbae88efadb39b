"""Logs as lines of JSON: one for each request that is worth a line, and everything else.

Owns: what a line says, and which requests get one. Heartbeats that went well are counted elsewhere,
not logged. Of requests that are too fast, that no key comes with or that cannot be served now, the
first of a caller has a line; those after it are counted and told together, so that a caller who
floods the server does not flood its log.
Must not: write bodies, keys or secrets.
"""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from collections.abc import Mapping
from typing import Any, Final, TextIO

import msgspec

logger = logging.getLogger("gpucredits.api")
QUIET_ROUTES = frozenset({"/v1/heartbeats", "/healthz", "/metrics"})
COUNTED: Final = frozenset({401, 429, 503})  # the first has a line, the next are counted
Refused = tuple[str, int, str]  # who, with which status, and why
QUIET_S: Final = 10.0  # at most one line of a key's refusals in so long
QUIET_MAX: Final = 10_000  # keys that are quiet at once; the rest are told as one


class Seen:
    """What the log says of a request. ``cause`` is why it could not be served now."""

    __slots__ = ("actor", "cause", "error", "reason", "route", "scope")

    def __init__(self) -> None:
        self.cause = ""
        self.route = ""
        self.actor = ""
        self.scope = ""  # of its key
        self.reason = ""
        self.error: Exception | None = None


class RequestLog:
    """The lines of requests."""

    def __init__(self, *, quiet_s: float = QUIET_S, quiet_max: int = QUIET_MAX) -> None:
        self._quiet_s = quiet_s
        self._quiet_max = quiet_max
        self._untold: dict[Refused, int] = {}

    def add(
        self,
        scope: Mapping[str, Any],
        seen: Seen,
        *,
        status: int,
        request_id: str,
        started: float,
    ) -> None:
        """Write the line of a request, if it is to have one."""
        if status < 400 and seen.route in QUIET_ROUTES:
            return
        level = logging.ERROR if status == 500 else logging.INFO
        if not logger.isEnabledFor(level):
            return
        if status in COUNTED and self._is_counted(caller_of(scope, seen), status, seen.reason):
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
        if seen.cause:
            line["cause"] = seen.cause
        logger.log(level, "request", extra={"fields": line}, exc_info=seen.error)

    def close(self) -> None:
        """Tell what was counted and not told."""
        for who in list(self._untold):
            self._tell(who, self._untold.pop(who))

    def _is_counted(self, caller: str, status: int, reason: str) -> bool:
        """Whether a refusal is only counted; if not, those that follow it will be for a while."""
        who = (caller, status, reason)
        if who not in self._untold and len(self._untold) >= self._quiet_max:
            who = ("", status, "")
        if who in self._untold:
            self._untold[who] += 1
            return True
        self._be_quiet(who)
        return False

    def _be_quiet(self, who: Refused) -> None:
        self._untold[who] = 0
        asyncio.get_running_loop().call_later(self._quiet_s, self._speak, who)

    def _speak(self, who: Refused) -> None:
        """Tell how many there were; a line was written, so it is quiet again for as long."""
        count = self._untold.pop(who, 0)
        if count:
            self._tell(who, count)
            self._be_quiet(who)

    def _tell(self, who: Refused, count: int) -> None:
        if count:
            actor, status, reason = who
            line = {"status": status, "actor": actor, "reason": reason, "count": count}
            logger.info("more requests turned away", extra={"fields": line})


def caller_of(scope: Mapping[str, Any], seen: Seen) -> str:
    """Who asks: a key, or without one the address."""
    client = scope.get("client")
    return seen.actor or (str(client[0]) if client else "")


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
