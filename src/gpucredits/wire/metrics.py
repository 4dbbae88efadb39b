"""Metrics on the wire: the text format that Prometheus reads, version 0.0.4.

Owns: how a metric is written. Labels are constants of ours: no name of a tenant stands in one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_ESCAPED: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})

Sample = tuple[str, float]  # the value of the metric's label, and the number


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric; ``label`` is the name of its only label, empty where it has none."""

    name: str
    kind: Literal["counter", "gauge"]
    meaning: str
    samples: tuple[Sample, ...]
    label: str = ""


def number(name: str, kind: Literal["counter", "gauge"], meaning: str, value: float) -> Metric:
    """A metric without a label."""
    return Metric(name, kind, meaning, (("", value),))


def exposition(metrics: list[Metric]) -> str:
    """The metrics as text, one line for each sample."""
    return "".join(_lines(metric) for metric in metrics)


def _lines(metric: Metric) -> str:
    name = metric.name
    head = f"# HELP {name} {metric.meaning}\n# TYPE {name} {metric.kind}\n"
    return head + "".join(
        f"{name}{_labels(metric.label, value)} {_digits(amount)}\n"
        for value, amount in metric.samples
    )


def _labels(label: str, value: str) -> str:
    return f'{{{label}="{value.translate(_ESCAPED)}"}}' if label else ""


def _digits(amount: float) -> str:
    return str(int(amount)) if amount == int(amount) else repr(float(amount))
