"""Readings on their way to the server: durable before they are sent, and counted once.

A reading is a piece of a lease's use with its utilisation. Readings wait until a batch takes them;
the batch gives each its ``seq`` and is written down before it is sent, and the same batch is sent
until the server has answered. So a lost answer, a kill -9 or a torn last record loses no reading
and counts none twice: the server drops a seq that it has.

Records: ``read`` (new readings), ``halved`` (readings were merged in pairs), ``batch`` (rows with
their seq), ``done`` (the batch was answered), ``forget`` (leases that are paid), and after the file
was written anew ``lease`` (where each lease stands) and ``wait`` (readings that wait).

Owns: the file ``usage``. Must not: know jobs, clocks or HTTP.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from gpucredits.agent.spool import Spool
from gpucredits.wire.billing.usage import EVENTS_MAX

WAITING_MAX: Final = 40_000  # readings; of 500 jobs read each 15 s, an outage of twenty minutes
FILE_BYTES_MAX: Final = 8 << 20  # then the file is written anew, with what is open only


class Reading(NamedTuple):
    """A piece of a lease's use, in milliseconds since its admission; utilisation in percent."""

    start_ms: int
    end_ms: int
    utilization: int | None


class SentReading(NamedTuple):
    """A reading of a batch."""

    reservation_id: str
    seq: int
    start_ms: int
    end_ms: int
    utilization: int | None


class UseSoFar(NamedTuple):
    """The use of a lease until an instant, in all."""

    reservation_id: str
    used_ms: int
    at_ms: int
    utilization: int | None


@dataclass(slots=True)
class LeaseReadings:
    """A lease's last seq, the use that was read, and the end of the last reading."""

    seq: int = 0
    read_ms: int = 0
    end_ms: int = 0


class UsageSpool:
    """The readings of a node that the server has not acknowledged."""

    def __init__(self, path: Path, waiting_max: int = WAITING_MAX) -> None:
        self._path = path
        self._waiting_max = waiting_max
        self._leases: dict[str, LeaseReadings] = {}
        self._waiting: dict[str, list[Reading]] = {}
        self._count = 0
        self._batch: list[SentReading] = []
        self._spool = Spool(path)
        for record in self._spool.records:
            self._replay(record)
        self._spool.records.clear()
        self.halvings = 0

    @property
    def waiting(self) -> int:
        """The number of readings that the server has not acknowledged."""
        return self._count + len(self._batch)

    def read_ms(self, reservation_id: str) -> int:
        """The use of a lease that has been read, in milliseconds."""
        lease = self._leases.get(reservation_id)
        return lease.read_ms if lease else 0

    def add(self, readings: Iterable[UseSoFar]) -> None:
        """Write down the use of leases since their last readings; it is on disk on return.

        If too many readings wait, neighbours are merged: resolution is lost, but no use.
        """
        rows = [row for each in readings if (row := self._row(each)) is not None]
        if rows:
            self._write({"kind": "read", "rows": rows})
        if self._count > self._waiting_max and any(
            len(each) > 1 for each in self._waiting.values()
        ):
            self.halvings += 1
            self._write({"kind": "halved"})

    def batch(self) -> list[SentReading]:
        """The readings to send now: the last batch again until the server has answered for it."""
        if not self._batch and self._count:
            self._write({"kind": "batch", "rows": list(self._taken())})
        return self._batch

    def done(self) -> None:
        """Note that the server has answered for the batch."""
        self._write({"kind": "done"})

    def forget(self, reservation_ids: Sequence[str]) -> None:
        """Forget leases that are paid: they have no more use."""
        if reservation_ids:
            self._write({"kind": "forget", "ids": list(reservation_ids)})

    def known(self) -> list[str]:
        """The leases that the spool knows."""
        return list(self._leases)

    def is_open(self, reservation_id: str) -> bool:
        """Whether some readings of a lease are still to be acknowledged."""
        sent = any(row.reservation_id == reservation_id for row in self._batch)
        return sent or reservation_id in self._waiting

    def close(self) -> None:
        """Close the file."""
        self._spool.close()

    def _row(self, said: UseSoFar) -> tuple[str, int, int, int | None] | None:
        lease = self._leases.get(said.reservation_id, LeaseReadings())
        lasted_ms = said.used_ms - lease.read_ms
        if lasted_ms <= 0:
            return None
        end_ms = max(said.at_ms, lease.end_ms + lasted_ms)
        return said.reservation_id, end_ms - lasted_ms, end_ms, said.utilization

    def _taken(self) -> Iterable[SentReading]:
        """Take the next readings, and give each the next seq of its lease."""
        left = EVENTS_MAX
        for reservation_id, readings in self._waiting.items():
            seq = self._leases[reservation_id].seq
            for place, reading in enumerate(readings[:left], start=1):
                yield SentReading(reservation_id, seq + place, *reading)
            left -= min(left, len(readings))
            if not left:
                return

    def _write(self, record: dict[str, Any]) -> None:
        self._spool.append(record)
        self._replay(record)
        if self._spool.size > FILE_BYTES_MAX:
            self._compact()

    def _replay(self, record: dict[str, Any]) -> None:
        """Apply a record; applying all records of the file again ends in the same state."""
        kind, rows = record["kind"], record.get("rows", ())
        match kind:
            case "read" | "wait":
                for reservation_id, *row in rows:
                    self._wait(reservation_id, Reading(*row), is_new=kind == "read")
            case "lease":
                self._leases |= {each: LeaseReadings(*row) for each, *row in rows}
            case "halved":
                self._waiting = {each: halved(readings) for each, readings in self._waiting.items()}
                self._count = sum(map(len, self._waiting.values()))
            case "batch":
                self._batch = [SentReading(*row) for row in rows]
                if not record.get("is_copy"):
                    self._take(self._batch)
            case "done":
                self._batch = []
            case "forget":
                gone = set(record["ids"])
                self._leases = {
                    each: lease for each, lease in self._leases.items() if each not in gone
                }
            case _:
                raise ValueError(f"{kind!r} is no record of readings")

    def _wait(self, reservation_id: str, reading: Reading, *, is_new: bool) -> None:
        if is_new:
            lease = self._leases.setdefault(reservation_id, LeaseReadings())
            lease.read_ms += reading.end_ms - reading.start_ms
            lease.end_ms = reading.end_ms
        self._waiting.setdefault(reservation_id, []).append(reading)
        self._count += 1

    def _take(self, batch: Sequence[SentReading]) -> None:
        counts: dict[str, int] = {}
        for row in batch:
            counts[row.reservation_id] = counts.get(row.reservation_id, 0) + 1
            self._leases[row.reservation_id].seq = row.seq
        for reservation_id, count in counts.items():
            rest = self._waiting.pop(reservation_id)[count:]
            if rest:
                self._waiting[reservation_id] = rest
        self._count -= len(batch)

    def _compact(self) -> None:
        """Rewrite the file with open leases and waiting readings only."""
        leases = [
            (each, lease.seq, lease.read_ms, lease.end_ms) for each, lease in self._leases.items()
        ]
        waiting = [(each, *row) for each, rows in self._waiting.items() for row in rows]
        records: list[dict[str, Any]] = [
            {"kind": kind, "rows": rows[start : start + EVENTS_MAX]}
            for kind, rows in (("lease", leases), ("wait", waiting))
            for start in range(0, len(rows), EVENTS_MAX)
        ]
        if self._batch:
            records.append({"kind": "batch", "rows": self._batch, "is_copy": True})
        self._spool.replace(records)


def halved(readings: Sequence[Reading]) -> list[Reading]:
    """Merge neighbours in pairs: add their time, and take the mean of their utilisation."""
    pairs = [merged(*readings[at : at + 2]) for at in range(0, len(readings) - 1, 2)]
    return pairs + list(readings[len(pairs) * 2 :])


def merged(first: Reading, second: Reading) -> Reading:
    """One reading for two; the gap between them does not count as use."""
    parts = [(each, each.end_ms - each.start_ms) for each in (first, second)]
    lasted_ms = sum(lasted for _, lasted in parts)
    known = [(each.utilization, lasted) for each, lasted in parts if each.utilization is not None]
    weight = sum(lasted for _, lasted in known)
    mean = round(sum(part * lasted for part, lasted in known) / weight) if weight else None
    return Reading(second.end_ms - lasted_ms, second.end_ms, mean)
