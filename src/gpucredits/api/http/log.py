"""Logs as lines of JSON: one for each request that is worth a line, and everything else.

Owns: what a line says, and which requests get one. Heartbeats that went well are counted elsewhere,
not logged. The first 401, 429 or 503 of a caller has a line; further ones are counted and logged
together every ten seconds, so that a caller who floods the server does not flood its log.
Must not: write bodies, keys or secrets.
"""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Final, TextIO

import msgspec

logger = logging.getLogger("gpucredits.api")
QUIET_ROUTES: Final = frozenset({"/v1/heartbeats", "/healthz", "/metrics"})
COUNTED: Final = frozenset({401, 429, 503})  # the first has a line, the next are counted
Refused = tuple[str, int, str]  # who, with which status, and why
QUIET_S: Final = 10.0  # at most one line of a key's refusals in so long
GATHERED_S: Final = 0.05  # how long a line waits for others
GATHERED_MAX: Final = 500
QUIET_MAX: Final = 10_000  # keys that are quiet at once; the rest are told as one
_ENCODER: Final = msgspec.json.Encoder(enc_hook=str)


@dataclass(slots=True)
class LoggedRequest:
    """What the log says of a request. ``cause`` is why it could not be served now."""

    cause: str = ""
    route: str = ""
    is_write: bool = False
    actor: str = ""
    scope: str = ""  # of its key
    reason: str = ""
    error: Exception | None = None


class RequestRecord(logging.LogRecord):
    """The record of a request. What all of them share is made once: that costs more than a line."""

    def __init__(self, level: int, fields: dict[str, Any], exc_info: Any) -> None:
        self.__dict__.update(_SHARED)
        self.levelno, self.levelname = level, logging.getLevelName(level)
        self.created = time.time()
        self.msecs = self.created % 1 * 1_000
        self.exc_info, self.fields = exc_info, fields


_SHARED: Final = vars(logging.LogRecord(logger.name, logging.INFO, "", 0, "request", (), None))


class RequestLog:
    """The lines of requests."""

    def __init__(self, *, quiet_s: float = QUIET_S, quiet_max: int = QUIET_MAX) -> None:
        self._quiet_s = quiet_s
        self._quiet_max = quiet_max
        self._untold: dict[Refused, int] = {}

    def add(
        self,
        scope: Mapping[str, Any],
        seen: LoggedRequest,
        *,
        status: int,
        request_id: str,
        started: float,
    ) -> None:
        """Write the line of a request, if it is to have one."""
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
        logger.handle(RequestRecord(level, line, error_info(seen.error)))

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


def caller_of(scope: Mapping[str, Any], seen: LoggedRequest) -> str:
    """Who asks: a key, or without one the address."""
    client = scope.get("client")
    return seen.actor or (str(client[0]) if client else "")


def error_info(error: Exception | None) -> Any:
    """What a log record keeps of an error."""
    return None if error is None else (type(error), error, error.__traceback__)


class JsonLines(logging.Formatter):
    """One JSON object on one line for each record, with the fields it was given."""

    _second = 0
    _written = ""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        second = int(record.created)
        if second != self._second:
            written = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
            self._second, self._written = second, written
        line: dict[str, Any] = {
            "at": f"{self._written}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage() if record.args else record.msg,
            "logger": record.name,
            **getattr(record, "fields", {}),
        }
        if record.exc_info is not None and record.exc_info[1] is not None:
            line["error"] = "".join(traceback.format_exception(record.exc_info[1]))
        return _ENCODER.encode(line).decode()


class GatheredLines(logging.StreamHandler[TextIO]):
    """Lines gathered for a moment and written together: a write for each costs more than the line.

    Warnings and errors, and what has gathered before them, are written at once.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._lines: list[str] = []
        self._is_due = False

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line, and see to it that it is written."""
        try:
            self._lines.append(self.format(record))
            if record.levelno >= logging.WARNING or len(self._lines) >= GATHERED_MAX:
                self.flush()
            elif not self._is_due:
                self._come_back()
        except Exception:  # noqa: BLE001  # as every handler: a log that fails stops nobody
            self.handleError(record)

    def flush(self) -> None:
        """Write what has gathered."""
        with self.lock or nullcontext():
            self._is_due = False
            if self._lines:
                lines, self._lines = self._lines, []
                self.stream.write("\n".join(lines) + "\n")
            super().flush()

    def _come_back(self) -> None:
        """Write in a moment; at once where there is no event loop to come back from."""
        try:
            asyncio.get_running_loop().call_later(GATHERED_S, self.flush)
        except RuntimeError:
            self.flush()
        else:
            self._is_due = True


def log_json(stream: TextIO) -> None:
    """Send every record of the process to a stream as JSON."""
    handler = GatheredLines(stream)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    for noisy in ("httpx", "asyncio", "uvicorn.error"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    # Nothing of this is shown, and each of them is looked up for every line.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
