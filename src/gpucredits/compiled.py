"""Whether the modules that every heartbeat goes through run compiled, and from which sources.

Owns: the record of what was compiled beside these sources, and refusing to run when that is no
longer what they say. An installed package has no such record: nobody edits it.
Must not: compile; ``tools/compile.py`` does.
"""

from __future__ import annotations

from hashlib import sha256
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path

FOLDER = Path(__file__).parent
RECORD = "compiled.txt"
EXTENSION = EXTENSION_SUFFIXES[0]  # of this Python; it takes no notice of another's
NOT_COMPILED = (
    "the rules run as plain Python here; compiled, by `make compiled` or in a wheel built with"
    " GPUCREDITS_COMPILE=1, a heartbeat takes less processor time"
)


class StaleError(ImportError):
    """What is compiled is not what the sources say."""


def is_compiled() -> bool:
    """Whether the rules run as machine code."""
    spec = find_spec("gpucredits.core.decide")
    return spec is not None and spec.origin is not None and not spec.origin.endswith(".py")


def record_of(names: list[str], folder: Path = FOLDER) -> str:
    """What is about to be compiled: a line for each source, with its digest."""
    return "".join(f"{digest_of(folder / name)} {name}\n" for name in names)


def require_fresh(folder: Path = FOLDER) -> None:
    """Refuse to go on when a source has changed since it was compiled."""
    record = folder / RECORD
    if not record.exists():
        return
    for line in record.read_text().splitlines():
        digest, _, name = line.partition(" ")
        extension = (folder / name).with_suffix(EXTENSION)
        if extension.exists() and digest_of(folder / name) != digest:
            raise StaleError(
                f"gpucredits/{name} has changed since it was compiled:"
                " `make compiled` compiles it again, `make pure` goes back to plain Python."
            )


def digest_of(path: Path) -> str:
    """What a source says, in short; nothing when it is gone."""
    return sha256(path.read_bytes()).hexdigest() if path.exists() else ""
