"""Giving GPUs to jobs: whole ones, parts, MIG instances, and never more than there is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpucredits.agent.devices import NodeDevices, NoDevicesError, visible
from gpucredits.agent.meters.reading import Device

MIG = "1g.10gb"


def node(gpus: int = 2, instances: int = 0, gpu_type: str = "") -> NodeDevices:
    """A node with so many GPUs and MIG instances."""
    devices = NodeDevices(gpu_type=gpu_type)
    whole = [Device(uuid=f"GPU-{n}", name="H100") for n in range(gpus)]
    parts = [
        Device(uuid=f"MIG-{n}", name="H100", profile=MIG, parent="GPU-x") for n in range(instances)
    ]
    devices.know([*whole, *parts])
    return devices


def test_whole_gpus_belong_to_one_job() -> None:
    """The next job gets others, and the one after is refused with the numbers."""
    devices = node(2)
    assert visible(devices.give("a", 1_000, "h100")) == {"CUDA_VISIBLE_DEVICES": "GPU-0"}
    assert list(devices.give("b", 1_000, "h100")) == ["GPU-1"]
    with pytest.raises(NoDevicesError, match=r"2 h100 devices, 0 of them wholly free.*needs 1 GPU"):
        devices.give("c", 1_000, "h100")
    devices.take_back("a")
    assert list(devices.give("c", 1_000, "h100")) == ["GPU-0"]


def test_parts_share_a_device_and_leave_whole_ones_free() -> None:
    """Parts go to the fullest device that has room."""
    devices = node(2)
    for name in ("a", "b"):
        assert devices.give(name, 400, "h100") == {"GPU-0": 400}
    assert devices.give("c", 500, "h100") == {"GPU-1": 500}
    assert devices.give("d", 200, "h100") == {"GPU-0": 200}
    with pytest.raises(NoDevicesError):
        devices.give("e", 501, "h100")


def test_one_and_a_half_gpus_are_two_devices() -> None:
    """The half is of a device that the job has not whole."""
    assert node(2).give("a", 1_500, "h100") == {"GPU-0": 1_000, "GPU-1": 500}


def test_instances_are_given_by_their_profile() -> None:
    """A type that names the profile gets instances only; other types get whole GPUs only."""
    devices = node(1, instances=2)
    assert list(devices.give("a", 2_000, f"h100-mig-{MIG}")) == ["MIG-0", "MIG-1"]
    assert list(devices.give("b", 1_000, "h100")) == ["GPU-0"]
    with pytest.raises(NoDevicesError):
        devices.give("c", 1_000, f"h100-mig-{MIG}")


def test_a_node_of_one_type_refuses_others() -> None:
    """Where the node says which type its GPUs are."""
    devices = node(1, gpu_type="h100")
    with pytest.raises(NoDevicesError, match="0 a100 devices"):
        devices.give("a", 1_000, "a100")
    assert devices.give("a", 1_000, "h100")


def test_a_job_may_name_its_devices() -> None:
    """They must be there and free."""
    devices = node(2)
    assert list(devices.give("a", 1_000, "h100", ["GPU-1"])) == ["GPU-1"]
    with pytest.raises(NoDevicesError):
        devices.give("b", 1_000, "h100", ["GPU-1"])
    with pytest.raises(NoDevicesError, match="no device GPU-9"):
        devices.give("b", 1_000, "h100", ["GPU-9"])


def test_what_can_never_be_given_is_told_apart() -> None:
    """More than the node has, or than was named: waiting cannot help. Control: a busy node."""
    devices = node(2)
    devices.give("a", 2_000, "h100")
    devices.require_possible(2_000, "h100")
    assert not devices.could_give(1_000, "h100", ["GPU-1"])
    with pytest.raises(NoDevicesError, match="needs 3 GPUs of the node, and it has 2 h100 devices"):
        devices.require_possible(3_000, "h100")
    with pytest.raises(NoDevicesError, match="names 1 of its h100 devices"):
        devices.require_possible(2_000, "h100", ["GPU-1"])
    with pytest.raises(NoDevicesError, match="no device GPU-9"):
        devices.require_possible(1_000, "h100", ["GPU-9"])
    devices.take_back("a")
    devices.give("b", 1_000, "h100")
    assert not devices.could_give(1_000, "h100", ["GPU-0"])
    NodeDevices().require_possible(9_000, "h100")


def test_a_node_without_known_devices_gives_none() -> None:
    """Jobs run as before, and see what they would have seen."""
    devices = NodeDevices()
    assert devices.give("a", 8_000, "h100") == {}
    assert visible({}) == {}
    assert devices.could_give(8_000, "h100")


def test_a_node_without_known_devices_refuses_jobs_of_another_type() -> None:
    """A cheap type is no way to its GPUs; a node without a type takes all."""
    devices = NodeDevices(gpu_type="h100")
    assert devices.give("a", 8_000, "h100") == {}
    with pytest.raises(NoDevicesError, match="the node is for h100"):
        devices.give("b", 1_000, "t4")
    with pytest.raises(NoDevicesError, match="the node is for h100"):
        devices.require_possible(1_000, "t4")


def test_a_node_whose_meter_shows_no_device_refuses() -> None:
    """A driver that lost its GPUs must not let jobs run without any."""
    with pytest.raises(NoDevicesError, match="0 h100 devices"):
        node(0).give("a", 1_000, "h100")


@given(st.lists(st.tuples(st.integers(1, 3_000), st.booleans()), max_size=40))
def test_no_device_is_given_twice(asks: list[tuple[int, bool]]) -> None:
    """However jobs come and go, a device is never given beyond the whole, nor a job too little."""
    devices = node(4)
    for number, (milli, leaves) in enumerate(asks):
        could = devices.could_give(milli, "h100")
        try:
            shares = devices.give(str(number), milli, "h100")
        except NoDevicesError:
            assert not could
            continue
        assert could
        assert sum(shares.values()) == milli
        assert all(0 <= devices.free(uuid) < 1_000 for uuid in shares)
        if leaves:
            devices.take_back(str(number))
