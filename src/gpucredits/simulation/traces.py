"""Published traces as workloads: Alibaba's GPU pods of 2023, and Microsoft's Philly jobs.

Owns: reading the two formats, and assumptions about what a trace does not record. Neither trace
names tenants: a seeded hash assigns them, and ``Workload.source`` says so.
Must not: change a job's size, arrival or run time.
"""

from __future__ import annotations

import csv
import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from gpucredits.simulation.workload import SimulatedJob, Tenants, Workload, ordered

FILE_BYTES_MAX: Final = 256 * 1024 * 1024
CPU_TYPE: Final = "cpu"  # pods without a GPU: thousandths of CPU cores
MODELS: Final = (  # GPU models of Alibaba's nodes, with how many there are
    ("g2", 4_392),
    ("t4", 842),
    ("g3", 312),
    ("p100", 265),
    ("v100m32", 204),
    ("v100m16", 195),
    ("a10", 2),
)
ALIBABA_PRICES: Final = {
    CPU_TYPE: 40_000,
    "g2": 1_200_000,
    "t4": 500_000,
    "g3": 1_500_000,
    "p100": 900_000,
    "v100m32": 2_400_000,
    "v100m16": 2_000_000,
    "a10": 1_000_000,
}
PHILLY_TYPE: Final = "p100"
PHILLY_PRICES: Final = {PHILLY_TYPE: 900_000}


class TraceError(ValueError):
    """The file is no trace that can be replayed; the text says what is wrong with it."""


def read_trace(path: Path, *, seed: int, orgs: int) -> Workload:
    """The workload of a trace; the format follows from the file's content."""
    size = path.stat().st_size
    if size > FILE_BYTES_MAX:
        raise TraceError(f"{path.name} has {size} bytes; a trace has at most {FILE_BYTES_MAX}")
    text = path.read_text(encoding="utf-8")
    tenants = Tenants(seed, orgs)
    note = f"{path.name}, tenants assigned by a hash of seed {seed}"
    if text.lstrip().startswith("["):
        return _philly(text, tenants, note)
    if text.startswith("name,"):
        return _alibaba(text, tenants, note, seed)
    raise TraceError(
        f"{path.name} is neither Alibaba's pods (a CSV file that begins with 'name,') nor "
        "Philly's jobs (a JSON list)"
    )


def _alibaba(text: str, tenants: Tenants, note: str, seed: int) -> Workload:
    jobs = []
    for number, row in enumerate(csv.DictReader(text.splitlines()), start=2):
        try:
            jobs.append(_pod(row, tenants, seed))
        except (KeyError, TypeError, ValueError) as error:
            raise TraceError(f"line {number} of the pods cannot be read: {error!r}") from error
    used = {job.gpu_type for job in jobs}
    prices = {name: price for name, price in ALIBABA_PRICES.items() if name in used}
    return Workload(source=note, jobs=ordered(jobs), prices=prices)


def _pod(row: dict[str, str], tenants: Tenants, seed: int) -> SimulatedJob:
    """A job for a pod. A pod that was never scheduled waits, and would run, until its deletion."""
    name = row["name"]
    created_s, deleted_s = int(row["creation_time"]), int(row["deletion_time"])
    began_s = int(row["scheduled_time"]) if row["scheduled_time"] else created_s
    gpus = int(row["num_gpu"])
    milli = gpus * int(row["gpu_milli"]) if gpus else int(row["cpu_milli"])
    return SimulatedJob(
        name=name,
        account=tenants.account_of(name),
        gpu_type=_model(seed, name) if gpus else CPU_TYPE,
        milli_gpus=milli,
        arrives_s=created_s,
        attempts_s=(max(1, deleted_s - began_s),),
        waits=row["qos"] == "BE",
        leaves_s=max(deleted_s, created_s + 1) if row["qos"] == "BE" else None,
    )


def _model(seed: int, name: str) -> str:
    """A GPU model for a pod, drawn in proportion to the nodes' GPUs."""
    total = sum(count for _, count in MODELS)
    digest = hashlib.sha256(f"model:{seed}:{name}".encode()).digest()
    place = int.from_bytes(digest[:8]) % total
    for model, count in MODELS:
        if place < count:
            return model
        place -= count
    return MODELS[0][0]


def _philly(text: str, tenants: Tenants, note: str) -> Workload:
    try:
        rows = json.loads(text)
        start = min(_seconds(row["submitted_time"]) for row in rows)
        jobs = [_attempts(row, tenants, start) for row in rows]
    except (KeyError, TypeError, ValueError) as error:
        raise TraceError(f"the jobs cannot be read: {error!r}") from error
    return Workload(source=note, jobs=ordered(jobs), prices=dict(PHILLY_PRICES))


def _attempts(row: dict[str, Any], tenants: Tenants, start_s: int) -> SimulatedJob:
    attempts = [
        max(1, _seconds(each["end_time"]) - _seconds(each["start_time"]))
        for each in row["attempts"]
    ]
    name = str(row["id"])
    return SimulatedJob(
        name=name,
        account=tenants.account_of(name),
        gpu_type=PHILLY_TYPE,
        milli_gpus=int(row["num_gpus"]) * 1_000,
        arrives_s=_seconds(row["submitted_time"]) - start_s,
        attempts_s=tuple(attempts),
        waits=True,
    )


def _seconds(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())
