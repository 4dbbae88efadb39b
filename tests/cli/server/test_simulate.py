"""``gpucredits simulate``: every bill is the oracle's, and a wrong bill would be seen."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpucredits.cli.main import main
from gpucredits.cli.server import simulate as simulate_command
from gpucredits.cli.server.fleet_picture import draw
from gpucredits.cli.server.simulate import show
from gpucredits.service.reads.verify import Verification
from gpucredits.simulation.faults import Fault, Mishap, mishap
from gpucredits.simulation.node import Attempt, End
from gpucredits.simulation.oracle import bill, least_bill
from gpucredits.simulation.summary import Summary, TenantTotal, WrongBill
from gpucredits.simulation.traces import TraceError, read_trace
from gpucredits.simulation.workload import SimulatedJob, made_up

PODS = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
pod-0,12000,16384,1,460,,LS,Running,0,7200,10
pod-1,6000,12288,0,0,,BE,Running,60,3660,60
pod-2,6000,12288,2,1000,,BE,Pending,90,400,
"""
PHILLY = """[{"id": "app-1", "num_gpus": 8, "runtime": 1.0, "submitted_time": "2017-10-07 01:11:39",
 "attempts": [{"start_time": "2017-10-07 01:12:09", "end_time": "2017-10-07 01:13:23"},
              {"start_time": "2017-10-07 01:13:30", "end_time": "2017-10-07 01:14:30"}]}]"""


def test_a_fleet_with_faults_pays_what_the_oracle_says(tmp_path: Path) -> None:
    """Crashes, partitions, repeats and slow clocks: bills and books are right, and drawn."""
    picture = tmp_path / "fleet.svg"
    options = ["--jobs", "25", "--hours", "4", "--seed", "5", "--orgs", "3"]
    done = CliRunner().invoke(main, ["simulate", *options, "--picture", str(picture), "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (told["wrong"], told["verified"], told["jobs"]) == ([], True, 25)
    assert sum(told["ends"].values()) == told["attempts"] > 0
    assert 0 <= told["unleased"] <= sum(told["refusals"].values()) + told["left"]
    assert picture.read_text().startswith("<svg")


def test_a_workload_may_leave_a_type_out() -> None:
    """One job, or the first ones of a trace, ask for some of the types that have a price."""
    workload = made_up(seed=1, jobs=1, hours=1, orgs=1)
    assert set(workload.gpu_types) < set(workload.prices)
    options = ["--jobs", "1", "--hours", "1", "--seed", "1", "--no-faults"]
    done = CliRunner().invoke(main, ["simulate", *options, "--interval-seconds", "1800"])
    assert done.exit_code == 0, done.output
    assert "1 bill equals the oracle's." in done.stdout


def test_a_picture_that_cannot_be_written_is_refused_before_the_simulation(tmp_path: Path) -> None:
    """Not after the minutes that it takes, and with the place."""
    picture = tmp_path / "nowhere" / "fleet.svg"
    done = CliRunner().invoke(main, ["simulate", "--jobs", "1", "--picture", str(picture)])
    assert (done.exit_code, "nowhere/fleet.svg cannot be written" in done.output) == (2, True)


def test_a_workload_follows_from_its_seed() -> None:
    """The same seed gives the same jobs, tenants and faults; another seed gives others."""
    once, again = (made_up(seed=3, jobs=40, hours=5, orgs=4) for _ in range(2))
    assert once == again != made_up(seed=4, jobs=40, hours=5, orgs=4)
    faults = [mishap(3, job.name, 0, with_faults=True) for job in once.jobs]
    assert faults == [mishap(3, job.name, 0, with_faults=True) for job in again.jobs]
    assert {each.fault for each in faults} > {Fault.NONE}
    assert mishap(3, "job", 0, with_faults=False) == Mishap()


def test_traces_become_workloads(tmp_path: Path) -> None:
    """Shares of GPUs, pods without one, pods that never ran, and attempts are read exactly."""
    (tmp_path / "pods.csv").write_text(PODS)
    pods = read_trace(tmp_path / "pods.csv", seed=1, orgs=3)
    shape = [(job.milli_gpus, job.arrives_s, job.attempts_s, job.waits) for job in pods.jobs]
    assert shape == [
        (460, 0, (7_190,), False),
        (6_000, 60, (3_600,), True),
        (2_000, 90, (310,), True),
    ]
    assert pods.jobs[1].gpu_type == "cpu"
    assert "tenants assigned by a hash of seed 1" in pods.source
    (tmp_path / "philly.json").write_text(PHILLY)
    [job] = read_trace(tmp_path / "philly.json", seed=1, orgs=3).jobs
    assert (job.milli_gpus, job.arrives_s, job.attempts_s) == (8_000, 0, (74, 60))


@pytest.mark.parametrize("text", ["", "hello", "name,cpu\npod,1", '[{"id": 1}]', "[1]"])
def test_what_is_no_trace_is_refused(tmp_path: Path, text: str) -> None:
    """The error says what would be right; nothing is started."""
    path = tmp_path / "trace"
    path.write_text(text)
    with pytest.raises(TraceError):
        read_trace(path, seed=1, orgs=2)
    done = CliRunner().invoke(main, ["simulate", "--trace", str(path)])
    assert done.exit_code == 2


JOB = SimulatedJob(
    name="j", account="o/p/u", gpu_type="h100", milli_gpus=460, arrives_s=0, attempts_s=(3_600,)
)


def attempt(reported_ms: int, end: End) -> Attempt:
    """An attempt that has ended."""
    made = Attempt(
        job=JOB, number=0, reservation_id="r", admitted_us=0, expires_us=0, mishap=Mishap()
    )
    made.reported_ms, made.end = reported_ms, end
    return made


def test_the_oracle_rounds_once_and_says_where_less_is_right() -> None:
    """A job that ended by itself has one right bill; a lease that was used up has a range."""
    assert bill(attempt(3_599_999, End.DONE), 1_000_001) == 460_000
    assert least_bill(attempt(3_599_999, End.DONE), 1_000_001) == 460_000
    assert least_bill(attempt(3_599_999, End.STOPPED), 1_000_001) == 460_000 - 2


SUMMARY = Summary(
    source="made <up>",
    jobs=1,
    unleased=0,
    attempts=1,
    beats=1,
    simulated_s=86_400,
    wrong=[],
    rounded=0,
    tenants=[TenantTotal(org="o", jobs=1, granted=10, spent=5, expected=5, least=5)],
    ends={},
    refusals={"budget": 2},
    faults={},
    waits=[("at once", 3)],
    left=0,
)


def test_jobs_and_leases_are_reconciled(capsys: pytest.CaptureFixture[str]) -> None:
    """Fewer or more leases than jobs are explained: jobs without one, and attempts."""
    show(replace(SUMMARY, jobs=50, unleased=6, attempts=49), 1)
    said = capsys.readouterr().out
    assert "Jobs without a lease (refused, or gave up waiting): 6." in said
    assert "Leases of jobs that were begun again: 5." in said


def test_people_hear_where_the_picture_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The last line names the file; waits are told as numbers of jobs."""
    books = Verification(rules=(), entries=0, findings=())
    waited = replace(SUMMARY, waits=[("at once", 3), ("up to 1 min", 2)])
    monkeypatch.setattr(simulate_command, "_play", lambda *_: (waited, books))
    picture = tmp_path / "fleet.svg"
    done = CliRunner().invoke(main, ["simulate", "--jobs", "1", "--picture", str(picture)])
    assert done.stdout.splitlines()[-1] == f"Picture: {picture}"
    assert "by longest wait: 3 at once, 2 up to 1 min." in done.stdout
    assert "up to 1 min" in picture.read_text()


def test_a_wrong_bill_is_wrong() -> None:
    """The control: one micro-credit too much or too little in a bill or a total is seen."""
    assert SUMMARY.is_right
    wrong = WrongBill(job="j", reservation_id="r", billed=6, expected=5)
    assert not replace(SUMMARY, wrong=[wrong]).is_right
    for spent in (4, 6):
        total = replace(SUMMARY.tenants[0], spent=spent)
        assert not replace(SUMMARY, tenants=[total]).is_right


def test_a_picture_escapes_what_it_shows() -> None:
    """A source's name cannot add elements to the picture."""
    drawn = draw(SUMMARY)
    assert "made &lt;up&gt;" in drawn
    assert "<up>" not in drawn
