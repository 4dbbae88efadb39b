"""The text that metrics are written as, and the counts behind it."""

from __future__ import annotations

from gpucredits.service.progress import Progress
from gpucredits.service.request_counts import RequestCounts
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
        counts.add(status)
    assert counts.by_class() == {"2xx": 2, "3xx": 0, "4xx": 2, "5xx": 1}
    assert counts.refused() == {"401": 2, "403": 0, "429": 0, "503": 1}


def test_failures_are_counted_in_a_row_and_in_all() -> None:
    """A batch that is saved ends the row; the sums only grow."""
    progress = Progress()
    progress.failed(OSError("no space left"))
    progress.saved()
    progress.failed(OSError("no space left"))
    assert (progress.failures, progress.failed_total, progress.saved_total) == (1, 2, 1)
