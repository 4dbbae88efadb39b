"""Compile the modules that every heartbeat goes through to C extensions, with mypyc.

The sources stay plain Python and run as they are; compiled, the same code takes less processor
time. Each extension is put beside its source, where Python finds it first, with a record of what
it was made from: gpucredits does not run on extensions that are older than their sources.

    python tools/compile.py                 compile
    python tools/compile.py --if-possible   the same, and go on without where that cannot be done
    python tools/compile.py --clean         remove everything that was compiled
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "src"
PACKAGE = SOURCES / "gpucredits"
BUILD = ROOT / "build" / "compiled"
# One group: what these call of each other is called in C. Left as they are: classes that JSON is
# read into, since compiled ones forget parts of their fields' types, those that callers may copy or
# pickle (snapshots of pools), what mostly waits, and where tests step between two steps of a batch.
HOT = {
    "api": "http/asgi http/scope http/throttle",
    "core": "account book bounds decide entry grant heartbeat ids limits money quota"
    " reservation rule rules/*/* fairshare/decay fairshare/decide"
    " fairshare/decisions fairshare/filling fairshare/room fairshare/tree",
    "store": "book/book_cache book/cached_book book/changes book/codecs book/fill"
    " book/needs book/rows book/save book/spending_rows",
    "service": "write/batch_queue write/heartbeats",
}


def main() -> None:
    """Compile, or remove what was compiled."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--clean", action="store_true", help="remove everything that was compiled")
    parser.add_argument(
        "--if-possible", action="store_true", help="no error where it cannot be done"
    )
    options = parser.parse_args()
    if options.clean:
        clean()
        return
    try:
        sys.stdout.write(f"compiled {len(compile_all())} modules\n")
    except Exception as error:
        clean()
        if not options.if_possible:
            raise
        sys.stdout.write(f"nothing is compiled ({type(error).__name__}); make compiled says why\n")


def modules() -> list[Path]:
    """The sources to compile."""
    return sorted(
        path
        for ring, names in HOT.items()
        for name in names.split()
        for path in (PACKAGE / ring).glob(f"{name}.py")
        if path.stem != "__init__"
    )


def extensions() -> list[Path]:
    """What was compiled."""
    return sorted([*SOURCES.glob("*.so"), *PACKAGE.rglob("*.so")])


def clean() -> None:
    """Remove every extension, and the record of them."""
    for path in (*extensions(), PACKAGE / "compiled.txt"):
        path.unlink(missing_ok=True)


def compile_all() -> list[Path]:
    """Make an extension of each module, beside its source."""
    from mypyc.build import mypycify  # noqa: PLC0415  # to remove them needs nothing
    from setuptools import Distribution  # noqa: PLC0415

    clean()
    paths = modules()
    # First, so that what is edited meanwhile, or left by an interrupted build, is not believed.
    record = recorder().record_of([str(path.relative_to(PACKAGE)) for path in paths], PACKAGE)
    (PACKAGE / "compiled.txt").write_text(record)
    here = Path.cwd()
    os.chdir(SOURCES)  # modules are named by their place below it
    try:
        made = mypycify(
            [
                f"--config-file={ROOT / 'pyproject.toml'}",
                f"--cache-dir={BUILD / 'types'}",
                *(str(path.relative_to(SOURCES)) for path in paths),
            ],
            opt_level="2",
            debug_level="0",
            multi_file=True,
            group_name="gpucredits",
            target_dir=str(BUILD),
        )
        command = Distribution({"ext_modules": made}).get_command_obj("build_ext")
        command.inplace = True
        command.parallel = os.cpu_count()
        command.build_lib = command.build_temp = str(BUILD)
        command.ensure_finalized()
        command.run()
    finally:
        os.chdir(here)
    return paths


def recorder() -> ModuleType:
    """The module that reads the record; the package itself would begin to read it."""
    spec = importlib.util.spec_from_file_location("recorder", PACKAGE / "compiled.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
