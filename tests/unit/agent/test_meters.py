"""Meters without a driver: DCGM exporter's text, the simulated meter, and choosing one."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpucredits.agent.meters.choice import open_meter
from gpucredits.agent.meters.dcgm import DcgmMeter, devices_in, readings_in
from gpucredits.agent.meters.reading import Device, DeviceReading, MeterError

MIB = 1 << 20
TEXT = r"""
# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a",device="nvidia0",modelName="H100 \"80\"",Hostname="n"} 73
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-b",device="nvidia1",modelName="H100"} 0 1700000000000
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-a",modelName="H100 \"80\""} 1024
DCGM_FI_DEV_FB_FREE{gpu="0",UUID="GPU-a",modelName="H100 \"80\""} 3072
DCGM_FI_PROF_GR_ENGINE_ACTIVE{UUID="GPU-c",modelName="A",GPU_I_PROFILE="1g.5gb",GPU_I_ID="7"} 0.4
DCGM_FI_DEV_FB_USED{gpu="2",UUID="GPU-c",modelName="A100"} 5
DCGM_FI_DEV_GPU_UTIL{gpu="3",modelName="no uuid"} 5
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-z"} 5
DCGM_FI_DEV_GPU_UTIL{gpu="4",UUID="GPU-e"} NaN
DCGM_FI_DEV_GPU_UTIL{gpu="5",UUID="GPU-f"} word
DCGM_FI_DEV_GPU_UTIL{torn
"""


def test_the_exporters_text_is_read() -> None:
    """Utilisation, memory, escapes, time stamps, MIG; what is torn or blank is left out."""
    readings = {each.uuid: each for each in readings_in(TEXT)}
    assert readings["GPU-a"] == DeviceReading(
        uuid="GPU-a",
        utilization=73,
        memory_bytes=1024 * MIB,
        memory_total_bytes=4096 * MIB,
    )
    assert readings["GPU-b"].utilization == 0
    assert readings["MIG-GPU-c/7/0"].utilization == 40
    assert set(readings) == {"GPU-a", "GPU-b", "GPU-c", "MIG-GPU-c/7/0"}


def test_a_gpu_with_instances_is_not_given_to_jobs() -> None:
    """Its instances are devices; the GPU itself is not."""
    devices = {each.uuid: each for each in devices_in(TEXT)}
    assert set(devices) == {"GPU-a", "GPU-b", "MIG-GPU-c/7/0"}
    assert devices["MIG-GPU-c/7/0"] == Device(
        uuid="MIG-GPU-c/7/0", name="A", profile="1g.5gb", parent="GPU-c"
    )


@pytest.fixture
def exporter() -> Iterator[str]:
    """A real HTTP server with the text."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/metrics" else 500)
            self.end_headers()
            self.wfile.write(TEXT.encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_the_exporter_is_scraped(exporter: str) -> None:
    """Over HTTP; an exporter that fails or is away says what to do."""
    meter = open_meter(f"dcgm:{exporter}/metrics")
    assert meter is not None
    assert len(meter.devices()) == 3
    assert len(meter.read()) == 4
    meter.close()
    for address in (f"{exporter}/other", "http://127.0.0.1:1/metrics"):
        away = DcgmMeter(address)
        with pytest.raises(MeterError, match="start dcgm-exporter"):
            away.read()
        away.close()


@pytest.mark.parametrize(
    "url", ["http://10.0.0.1:9400/metrics", "https://127.0.0.1/", "http://other/metrics", "x"]
)
def test_an_exporter_of_another_node_is_refused(url: str) -> None:
    """A node reads its own GPUs only."""
    with pytest.raises(MeterError, match="not on this node"):
        DcgmMeter(url)


def test_a_simulated_meter_follows_its_script(tmp_path: Path) -> None:
    """Without a script every GPU is busy; a torn script is an error of the reading."""
    plain = open_meter("simulated:2")
    assert plain is not None
    assert [each.utilization for each in plain.read()] == [90, 90]
    script = tmp_path / "gpus.json"
    meter = open_meter(f"simulated:2:{script}")
    assert meter is not None
    first, second = (each.uuid for each in meter.devices())
    script.write_text(f'{{"{first}": {{"utilization": 0, "pids": [7]}}, "*": {{"pids": []}}}}')
    readings = meter.read()
    assert [each.utilization for each in readings] == [0, 90]
    assert [[p.pid for p in each.processes or ()] for each in readings] == [[7], []]
    assert readings[1].uuid == second
    script.write_text("{")
    with pytest.raises(MeterError, match="does not hold readings"):
        meter.read()


@pytest.mark.parametrize("words", ["", "rocm", "simulated", "simulated:x", "simulated:99999"])
def test_words_that_name_no_meter_are_refused(words: str) -> None:
    """The error says what to write."""
    with pytest.raises(MeterError):
        open_meter(words)


def test_no_meter_can_be_chosen() -> None:
    """``none`` reads nothing."""
    assert open_meter("none") is None
