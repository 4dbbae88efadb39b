"""The program's entry."""

from __future__ import annotations

from gpucredits.cli.main import main

if __name__ == "__main__":
    main()
