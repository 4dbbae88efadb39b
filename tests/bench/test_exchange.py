"""The load generator's HTTP and its checks see what they must see."""

from __future__ import annotations

import asyncio
import time

import msgspec
import pytest

from gpucredits.core.money import cost, format_credits
from gpucredits_bench.traffic.beating import Lease, Node, Post, Tally, drive_closed
from gpucredits_bench.traffic.exchange import ExchangeError, Stream, Target
from gpucredits_bench.traffic.load import quantile

TARGET = Target(8437, "gck_secret")
LEASES = [Lease("rsv_1_a", 36_000_000, 100.0), Lease("rsv_2_b", 72_000_000, 101.0)]


def answer(used_ms: int, leases: list[Lease]) -> bytes:
    """What a right server answers."""
    return msgspec.json.encode(
        {
            "results": [
                {
                    "reservation_id": lease.reservation_id,
                    "decision": "continue",
                    "settled": format_credits(cost(lease.rate, used_ms)),
                }
                for lease in leases
            ]
        }
    )


def test_answers_are_cut_out_of_any_stream() -> None:
    """However the bytes are split, the same answers come out, one after another."""
    text = b'HTTP/1.1 200 OK\r\nContent-Length: 4\r\nx: y\r\n\r\n{"a"HTTP/1.1 503 No\r\n'
    text += b"content-length: 0\r\n\r\n"
    stream = Stream()
    found = [stream.feed(text[place : place + 1]) for place in range(len(text))]
    assert [each for each in found if each] == [(200, b'{"a"'), (503, b"")]


def test_an_answer_without_a_length_is_refused() -> None:
    """What cannot be cut is an error, not a wait without end."""
    with pytest.raises(ExchangeError, match="Content-Length"):
        Stream().feed(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")


def test_a_report_is_json_whose_use_advances_with_time() -> None:
    """Each report names every lease, with the time since the last of them was admitted."""
    post = Post(TARGET, "node-3", LEASES)
    for seq, now, used_ms in ((1, 102.5, 1_500), (2, 103.0, 2_000), (3, 103.0004, 2_000)):
        head, _, body = post.encode(seq, now).partition(b"\r\n\r\n")
        assert b"POST /v1/heartbeats HTTP/1.1" in head
        assert f"content-length: {len(body)}".encode() in head
        beats = [
            {"reservation_id": lease.reservation_id, "seq": seq, "used_ms": used_ms}
            for lease in LEASES
        ]
        assert msgspec.json.decode(body) == {"node": "node-3", "beats": beats}


def test_a_node_waits_until_there_is_use_to_report() -> None:
    """Rounds faster than a millisecond do not repeat a use, nor invent one."""
    lease = Lease("rsv_1_a", 36_000_000, time.monotonic())
    sent: list[int] = []

    class Quick(Node):
        def write(self, data: bytes) -> None:
            body = msgspec.json.decode(data.partition(b"\r\n\r\n")[2])
            used_ms = body["beats"][0]["used_ms"]
            assert used_ms <= (time.monotonic() - lease.admitted_at) * 1_000
            sent.append(used_ms)
            self.answered(200, answer(used_ms, [lease]))

    async def drive() -> Tally:
        now = time.monotonic()
        tally = Tally(now, now + 0.5)
        await drive_closed([Quick([Post(TARGET, "node-0", [lease])], tally, 1)], tally)
        return tally

    tally = asyncio.run(drive())
    assert tally.problems == []
    assert len(sent) > 1
    assert sent == sorted(set(sent))


def test_a_wrong_charge_is_noticed() -> None:
    """An answer that is not what the formula says is a problem with a name."""
    post = Post(TARGET, "node-3", LEASES)
    post.encode(1, 102.5)
    assert post.check(answer(1_500, LEASES)) == ""
    assert "rsv_1_a" in post.check(answer(1_600, LEASES))
    assert "1 results for 2" in post.check(answer(1_500, LEASES[:1]))


def test_only_the_window_counts() -> None:
    """Warm-up and what comes too late are not counted."""
    tally = Tally(10.0, 20.0)
    for now in (9.9, 10.0, 19.9, 20.0):
        tally.add(100, now - 0.5, now)
    assert (tally.beats, tally.posts) == (200, 2)
    assert tally.latencies == pytest.approx([0.5, 0.5])


def test_quantiles_of_small_samples() -> None:
    """A quantile is a value of the sample, and nothing of nothing."""
    assert quantile([], 0.5) == 0.0
    assert quantile([1.0], 0.95) == 1.0
    assert quantile([float(n) for n in range(100)], 0.95) == 95.0
