"""``python -m gpucredits`` and the ``gpucredits`` command.

The library alone has no dependencies, so the command may be there without its parts: it says so.
"""

from __future__ import annotations


def main() -> None:
    """Run the command line, if its parts are installed."""
    try:
        from gpucredits.cli.main import main as run  # noqa: PLC0415  # it may not be installed
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "gpucredits":
            raise
        raise SystemExit(
            f"The command line needs the package {error.name}, which is not installed: "
            "install gpucredits[server], or gpucredits[cli] to use a server elsewhere."
        ) from None
    run()


if __name__ == "__main__":
    main()
