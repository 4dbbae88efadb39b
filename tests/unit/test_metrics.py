"""The text that metrics are written as, and the counts behind it."""

from __future__ import annotations

from gpucredits.service.reads.request_counts import RequestCounts
from gpucredits.service.write.batch_worker import FAILURES_MIN, REMEMBERED_S, WriteProgress
from gpucredits.service.write.errors import Busy, ClockJumped
from gpucredits.store.database.errors import Unavailable
from gpucredits.wire.metrics import Metric, exposition, number


def test_a_metric_is_its_meaning_its_type_and_its_samples() -> None:
    """One line each, numbers as short as they are exact."""
    text = exposition(
        [
            number("a_total", "counter", "How often.", 3),
            Metric("b", "gauge", "How far.", (("x", -1.5), ("y", 0.0)), "side"),
        ]
    )
    assert text.splitlines() == [
        "# HELP a_total How often.",
        "# TYPE a_total counter",
        "a_total 3",
        "# HELP b How far.",
        "# TYPE b gauge",
        'b{side="x"} -1.5',
        'b{side="y"} 0',
    ]


def test_a_label_cannot_break_its_line() -> None:
    """Quotes, line ends and backslashes are escaped."""
    text = exposition([Metric("a", "gauge", "What.", (('x"\n\\', 1),), "side")])
    assert text.splitlines()[-1] == r'a{side="x\"\n\\"} 1'


def test_requests_are_counted_by_status() -> None:
    """Classes and refusals that never came are there with 0."""
    counts = RequestCounts()
    for status in (200, 201, 401, 401, 503):
        counts[status] += 1
    assert counts.by_class() == {"2xx": 2, "3xx": 0, "4xx": 2, "5xx": 1}
    assert counts.refused() == {"401": 2, "403": 0, "429": 0, "503": 1}


def test_failures_are_counted_in_a_row_and_in_all() -> None:
    """A batch that is saved ends the row; the sums only grow."""
    progress = WriteProgress()
    progress.failed(Unavailable("no space left"))
    progress.saved()
    progress.failed(Unavailable("no space left"))
    assert (progress.failures, progress.failed_total, progress.saved_total) == (1, 2, 1)


def test_failures_are_not_held_against_a_server_for_ever() -> None:
    """When nobody tries to write any more, trouble becomes a doubt that only a write removes."""
    now = [0.0]
    progress = WriteProgress(lambda: now[0])
    assert (progress.trouble, progress.is_in_doubt) == ("", False)
    for _ in range(FAILURES_MIN):
        progress.failed(Unavailable("no space left"))
    now[0] = REMEMBERED_S
    assert "no space left" in progress.trouble
    now[0] += 1
    assert (progress.trouble, progress.is_in_doubt) == ("", True)
    progress.saved()
    assert not progress.is_in_doubt


def test_an_error_is_counted_once_and_a_jumped_clock_never() -> None:
    """A request whose batch has failed was not turned away before it; a clock has its own alarm."""
    progress = WriteProgress()
    error = Unavailable("no space left")
    progress.failed(error)
    progress.turn_away(error)
    progress.turn_away(Busy(1.0))
    for jumped in (ClockJumped("ahead"), ClockJumped("behind")):
        progress.failed(jumped)
        progress.turn_away(jumped)
    assert (progress.failed_total, progress.turned_away_total) == (1, 0)
    progress.turn_away(Unavailable("no connection"))
    assert (progress.turned_away, progress.turned_away_total) == (1, 1)
    progress.decided()
    assert (progress.turned_away, progress.turned_away_total) == (0, 1)
