"""``gpucredits serve`` with something altered in this process alone, so that a test sees a fault.

A specification says what is altered: other settings and another environment for PostgreSQL, no
check for durability, belief in any clock, health that does not hear of writes that fail. The
product itself has no such options.
"""

from __future__ import annotations

import functools
import sys
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import msgspec

from gpucredits import app
from gpucredits.cli.main import main
from gpucredits.service.write.batch_worker import WriteProgress
from gpucredits.store.book.database_clock import ClockCheck
from gpucredits.store.embedded import cluster
from gpucredits.store.embedded.server import EmbeddedPostgres

OPTION = "--altered="
PROGRAM = ("-m", "support.faults.altered_server")


class Altered(msgspec.Struct):
    """What is not as the product has it."""

    settings: dict[str, str] = {}
    environment: dict[str, str] = {}
    is_checked: bool = True  # whether a database that loses writes is refused
    believes_clock: bool = False
    hears_of_failures: bool = True


def option(altered: Altered, folder: Path) -> str:
    """The word of the command line that tells a server of this module; noted in a folder."""
    path = folder / "altered.json"
    path.write_bytes(msgspec.json.encode(altered))
    return f"{OPTION}{path}"


async def accept_anything(*_: object, **__: object) -> None:
    """In place of the check for durability."""


def run(altered: Altered) -> None:
    """Serve, altered."""
    changed = functools.partial(EmbeddedPostgres, settings=altered.settings)
    environment = cluster.ENVIRONMENT | altered.environment
    with ExitStack() as stack:
        stack.enter_context(patch.object(app, "EmbeddedPostgres", changed))
        stack.enter_context(patch.object(cluster, "ENVIRONMENT", environment))
        if not altered.is_checked:
            stack.enter_context(
                patch("gpucredits.store.database.connections.require_durable", accept_anything)
            )
        if altered.believes_clock:
            stack.enter_context(patch.object(ClockCheck, "hear", lambda *_: None))
        if not altered.hears_of_failures:
            for heard in ("failed", "turn_away"):
                stack.enter_context(patch.object(WriteProgress, heard, lambda *_: None))
        main()


if __name__ == "__main__":
    [word] = [word for word in sys.argv if word.startswith(OPTION)]
    sys.argv.remove(word)
    told = Path(word.removeprefix(OPTION)).read_bytes()
    run(msgspec.json.decode(told, type=Altered))
