"""The meter that scrapes NVIDIA's DCGM exporter: Prometheus text over HTTP, on this node.

The exporter tells utilisation and memory of each GPU and MIG instance, and no processes.
Owns: the names of its metrics, and reading their text.
Must not: reach another machine: a metric of another node must not be taken for one of ours.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final
from urllib.parse import urlsplit

import httpx

from gpucredits.agent.meters.reading import Device, DeviceReading, MeterError

URL_DEFAULT: Final = "http://127.0.0.1:9400/metrics"
TIMEOUT_S: Final = 5.0
BYTES_MAX: Final = 4 << 20
UTILIZATION: Final = "DCGM_FI_DEV_GPU_UTIL"
ACTIVE: Final = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"  # a part of one; MIG instances have only this
USED_MIB: Final = "DCGM_FI_DEV_FB_USED"
FREE_MIB: Final = "DCGM_FI_DEV_FB_FREE"
_READ: Final = frozenset({UTILIZATION, ACTIVE, USED_MIB, FREE_MIB})
_SAMPLE = re.compile(r"^(\w+)\{(.*)\}\s+(\S+)(?:\s+-?\d+)?$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_MIB: Final = 1 << 20


class DcgmMeter:
    """Scrapes one exporter."""

    def __init__(self, url: str = URL_DEFAULT) -> None:
        check_local(url)
        self._url = url
        self._client = httpx.Client(timeout=TIMEOUT_S, trust_env=False)

    @property
    def name(self) -> str:
        """The exporter's address."""
        return f"DCGM exporter at {self._url}"

    def devices(self) -> list[Device]:
        """The devices that the exporter lists."""
        return devices_in(self._text())

    def read(self) -> list[DeviceReading]:
        """The exporter's reading of each device."""
        return readings_in(self._text())

    def close(self) -> None:
        """Hang up."""
        self._client.close()

    def _text(self) -> str:
        try:
            with self._client.stream("GET", self._url) as answer:
                answer.raise_for_status()
                body = b""
                for part in answer.iter_bytes():
                    body += part
                    if len(body) > BYTES_MAX:
                        raise MeterError(f"{self._url} sends more than {BYTES_MAX} bytes")
        except httpx.HTTPError as error:
            raise MeterError(
                f"{self._url} does not answer ({error}): start dcgm-exporter on this node, or "
                "name its address with --meter dcgm:URL"
            ) from error
        return body.decode(errors="replace")


def check_local(url: str) -> None:
    """MeterError unless an address is on this node."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        is_local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_local = False
    if parts.scheme != "http" or not is_local:
        raise MeterError(f"{url} is not on this node: write {URL_DEFAULT}")


def samples_in(text: str) -> dict[str, tuple[dict[str, str], dict[str, float]]]:
    """The labels and the metrics of each device, as far as this meter reads them."""
    found: dict[str, tuple[dict[str, str], dict[str, float]]] = {}
    for line in text.splitlines():
        match = _SAMPLE.match(line)
        if match is None or match[1] not in _READ:
            continue
        labels = dict(_LABEL.findall(match[2]))
        uuid = uuid_of(labels)
        try:
            value = float(match[3])
        except ValueError:
            continue
        if uuid and value >= 0:  # neither NaN nor a blank, which DCGM writes as a huge number
            found.setdefault(uuid, (labels, {}))[1][match[1]] = value
    return found


def uuid_of(labels: dict[str, str]) -> str:
    """The device's name for CUDA; a MIG instance is named by its GPU and numbers."""
    uuid, instance = labels.get("UUID", ""), labels.get("GPU_I_ID", "")
    return f"MIG-{uuid}/{instance}/0" if uuid and instance else uuid


def devices_in(text: str) -> list[Device]:
    """The devices in an exporter's text; a GPU that has MIG instances is left out."""
    found = samples_in(text)
    parents = {labels["UUID"] for labels, _ in found.values() if labels.get("GPU_I_ID")}
    return [
        Device(
            uuid=uuid,
            name=labels.get("modelName", ""),
            memory_bytes=total_bytes(values),
            profile=labels.get("GPU_I_PROFILE", "").lower(),
            parent=labels["UUID"] if labels.get("GPU_I_ID") else "",
        )
        for uuid, (labels, values) in found.items()
        if uuid not in parents
    ]


def readings_in(text: str) -> list[DeviceReading]:
    """The readings in an exporter's text, by device."""
    return [
        DeviceReading(
            uuid=uuid,
            utilization=utilization_in(values),
            memory_bytes=int(values[USED_MIB] * _MIB) if USED_MIB in values else None,
            memory_total_bytes=total_bytes(values),
        )
        for uuid, (_, values) in samples_in(text).items()
    ]


def utilization_in(values: dict[str, float]) -> int | None:
    """The utilisation in percent, from the first metric that is there."""
    if UTILIZATION in values:
        return min(round(values[UTILIZATION]), 100)
    return min(round(values[ACTIVE] * 100), 100) if ACTIVE in values else None


def total_bytes(values: dict[str, float]) -> int | None:
    """The memory of a device."""
    if USED_MIB in values and FREE_MIB in values:
        return int((values[USED_MIB] + values[FREE_MIB]) * _MIB)
    return None
