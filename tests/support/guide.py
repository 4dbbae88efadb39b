"""Commands shown in a page, run in order, and what they print."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from gpucredits.cli.main import main

BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
# What differs from run to run, and what stands for it in the comparison.
CHANGING = (
    (
        re.compile(r"\b20(?!30-01-01|26-01-02)\d\d-\d\d-\d\d \d\d:\d\d:\d\dZ"),
        "2026-03-01 12:00:00Z",
    ),
    (re.compile(r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"), "2026-03-01T12:00:00.000000Z"),
    (re.compile(r"\breq_[0-9a-f]{20}\b"), "req_0123456789abcdef0123"),
    (re.compile(r"\bgck_\S+"), "gck_" + "x" * 43),
    (re.compile(r"(lease ends in +)\S+"), r"\g<1>2m"),
    (re.compile(r"(?<=embedded, in )\S+"), "/srv/gpucredits-data."),
)


@dataclass(frozen=True, slots=True)
class Step:
    """A command of a page, and the output that the page shows."""

    command: str
    shown: str


def steps(page: Path) -> list[Step]:
    """The commands of a page in order."""
    found = []
    for block in BLOCK.findall(page.read_text()):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            found.append(Step(command, shown.strip("\n")))
    return found


def run(command: str, data_dir: Path) -> str:
    """What a command prints, on both channels, without what differs from run to run."""
    _, *words = shlex.split(command)
    env: dict[str, str | None] = {
        "GPUCREDITS_DATA_DIR": str(data_dir),
        "GPUCREDITS_URL": None,
        "GPUCREDITS_API_KEY": None,
        "FORCE_COLOR": None,
    }
    result = CliRunner().invoke(main, words, env=env, prog_name="gpucredits")
    text = result.output.strip("\n")
    for pattern, fixed in CHANGING:
        text = pattern.sub(fixed, text)
    return text
