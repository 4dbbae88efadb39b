"""Write out what follows from the declarations of store/book/tables.py.

python tools/make_rows.py           write store/book/rows.py and the lists of columns in the SQL
python tools/make_rows.py --check   only say whether they are as declared
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from rows_python import python
from rows_sql import sql

from gpucredits.store.book.tables import TABLES

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "gpucredits"
ROWS = PACKAGE / "store" / "book" / "rows.py"
SQL = PACKAGE / "store" / "sql"


def outputs() -> dict[Path, str]:
    """What the files should hold."""
    found = {ROWS: formatted(python(TABLES))}
    for path in sorted(SQL.glob("*/*.sql")):
        found[path] = sql(path.read_text(encoding="utf-8"), TABLES)
    return found


def formatted(text: str) -> str:
    """Python in the project's format."""
    ruff = Path(sys.executable).with_name("ruff")
    for arguments in (["check", "--fix", "--exit-zero", "-q"], ["format", "-q"]):
        command = [str(ruff), *arguments, "--stdin-filename", str(ROWS), "-"]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)  # noqa: S603
        text = done.stdout
    return text


def main() -> None:
    """Write the files, or say which of them are not as declared."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    is_check = parser.parse_args().check
    changed = [
        (path, text)
        for path, text in outputs().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path, text in changed:
        if is_check:
            sys.stdout.write(f"{path.name} is not as tables.py declares it: run make rows\n")
        else:
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"wrote {path.name}\n")
    if changed and is_check:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
