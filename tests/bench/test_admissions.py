"""Tiny runs of admissions: every contestant works, and its books add up."""

from __future__ import annotations

import asyncio
from pathlib import Path

import asyncpg
import msgspec
import pytest
from click.testing import CliRunner

from gpucredits.cli.main import main
from gpucredits_bench.contestants import admission_textbook, floor
from gpucredits_bench.contestants.admission_textbook import (
    Admissions,
    Calls,
    RefusedAdmissionError,
    Statements,
)
from gpucredits_bench.contestants.floor import Floor
from gpucredits_bench.runs.admission_figures import AdmissionFigures, admission_table
from gpucredits_bench.traffic.beating import Node, Tally, drive_open
from gpucredits_bench.workload import GPU_TYPE, job_path
from support.engines.postgres import TestServer, sql


def test_a_whole_run_measures_every_contestant(data_dir: Path) -> None:
    """Pairs, idle reserves and batches give figures, all books add up, the place is clean."""
    small = ["--orgs", "4", "--connections", "3", "--windows", "2", "--seconds", "0.8"]
    arguments = ["bench", "admissions", *small, "--data-dir", str(data_dir), "--json"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    figures = msgspec.json.decode(result.stdout, type=AdmissionFigures)
    assert figures.verified
    assert [cell.orgs for cell in figures.cells] == [4, 1]
    for cell in figures.cells:
        assert set(cell.samples) == {"ours", "statements", "calls", "floor"}
        assert all(any(each.per_second for each in told) for told in cell.samples.values())
        assert all(min(cell.cost(name)) >= 0 for name in cell.samples)
    assert min(*figures.idle.ratios, *figures.batches_per_second) > 0
    assert min(figures.idle.call_behind_http) > 0
    assert set(figures.bars) == {"32 connections, one org", "idle", "batches", "verified"}
    assert "x the textbook (at least 1.5)" in admission_table(figures)
    assert list(data_dir.iterdir()) == []


@pytest.mark.parametrize("way", [Statements, Calls])
def test_textbooks_admit_once_and_charge_what_is_due(
    postgres: TestServer, way: type[Statements | Calls]
) -> None:
    """A repeated key has one effect, a settlement charges once, and an unknown org is refused."""
    name = f"admissions_{way.__name__.lower()}"
    database, admin = postgres.server.dsn(name), postgres.server.dsn("postgres")
    sql(admin, f"CREATE DATABASE {name}")

    async def scenario() -> bool:
        connection = await asyncpg.connect(database)
        await admission_textbook.create(connection, 2)
        await connection.close()
        async with asyncpg.create_pool(database, min_size=1, max_size=2) as pool:
            admissions: Admissions = way(pool)
            asked = (job_path(1), "train", GPU_TYPE, 2, 60_000)
            first = await admissions.reserve(*asked, "key-1")
            assert first[1] == 1_200_000
            assert await admissions.reserve(*asked, "key-1") == first
            assert await admissions.reserve(*asked, "key-2") != first
            for _ in range(2):
                assert await admissions.settle(first[0], 1_500, "end") == 30_000
            with pytest.raises(RefusedAdmissionError):
                await admissions.reserve(job_path(7), "train", GPU_TYPE, 1, 60_000, "key-3")
        return await admission_textbook.is_balanced(database)

    try:
        assert asyncio.run(scenario())
    finally:
        sql(admin, f"DROP DATABASE {name} WITH (FORCE)")


def test_the_floor_keeps_every_key_in_few_statements(postgres: TestServer) -> None:
    """Requests that wait together are durable together, and a repeated key is kept once."""
    database, admin = postgres.server.dsn("floor_keys"), postgres.server.dsn("postgres")
    sql(admin, "CREATE DATABASE floor_keys")

    async def scenario() -> tuple[int, int]:
        connection = await asyncpg.connect(database)
        await floor.create(connection)
        ours = await Floor.connect(database)
        asked = (job_path(1), "train", GPU_TYPE, 2, 60_000)
        opened = await asyncio.gather(*(ours.reserve(*asked, f"key-{n % 20}") for n in range(40)))
        assert len({number for number, _ in opened}) == 40
        assert {hold for _, hold in opened} == {1_200_000}
        assert await ours.settle(opened[0][0], 1_500, "end") == 15_000
        kept = await connection.fetchval("SELECT count(*) FROM requests")
        await ours.close()
        with pytest.raises(asyncpg.InterfaceError):
            await ours.settle(opened[0][0], 1_500, "after the end")
        await connection.close()
        return kept, ours.statements

    try:
        assert asyncio.run(scenario()) == (21, 2)
    finally:
        sql(admin, "DROP DATABASE floor_keys WITH (FORCE)")


def test_a_report_is_late_only_after_it_was_due(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the clock: no report is stamped before its slot, and all slots of the window are used."""
    clock = [100.0]
    stamps: list[float] = []

    class Instant(Node):
        def report(self, asked_at: float) -> None:
            assert asked_at <= clock[0]
            stamps.append(asked_at)
            self.on_idle(self)

    async def pass_time(seconds: float) -> None:
        clock[0] += seconds

    monkeypatch.setattr("gpucredits_bench.traffic.beating.time.monotonic", lambda: clock[0])
    monkeypatch.setattr("gpucredits_bench.traffic.beating.asyncio.sleep", pass_time)
    tally = Tally(100.0, 101.0)
    asyncio.run(drive_open([Instant([], tally, 1)], tally, 10.0))
    assert stamps == pytest.approx([100.0 + slot / 10 for slot in range(1, len(stamps) + 1)])
    assert len(stamps) in (9, 10)
