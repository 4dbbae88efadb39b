"""The options by which every command finds its server, and how long it asks.

Owns: their names, where each may come from, and what help says of them.
Must not: read what they name; ``session`` does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from gpucredits.cli.terminal import values
from gpucredits.cli.terminal.address import DATA_DIR_DEFAULT
from gpucredits.cli.terminal.grammar import ServerOption

TIMEOUT_MIN_MS: Final = 100


def timeout(text: str) -> int:
    """Milliseconds that a command may go on asking."""
    ms = values.duration(text)
    if ms < TIMEOUT_MIN_MS:
        raise click.BadParameter(f"{text!r} is too short: give at least 0.1s.")
    return ms


SERVER_OPTIONS: Final = [
    click.option(
        "--url",
        cls=ServerOption,
        envvar="GPUCREDITS_URL",
        show_envvar=True,
        help="The server's address.",
    ),
    click.option(
        "--key",
        cls=ServerOption,
        envvar="GPUCREDITS_API_KEY",
        show_envvar=True,
        help="Your API key.",
    ),
    click.option(
        "--data-dir",
        cls=ServerOption,
        envvar="GPUCREDITS_DATA_DIR",
        show_envvar=True,
        type=click.Path(file_okay=False, path_type=Path),
        help="A local server's data, where its address and admin key are found "
        f"[default: {DATA_DIR_DEFAULT} if it is here].",
    ),
    click.option(
        "--json",
        "as_json",
        cls=ServerOption,
        is_flag=True,
        help="Print answers and errors as JSON.",
    ),
    click.option(
        "--timeout",
        "timeout_ms",
        cls=ServerOption,
        type=timeout,
        metavar="DURATION",
        default="10s",
        show_default=True,
        help="How long to go on asking a server that does not answer.",
    ),
    click.option(
        "--ca-file",
        cls=ServerOption,
        envvar="GPUCREDITS_CA_FILE",
        show_envvar=True,
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="The certificates to trust at an https address "
        "[default: SSL_CERT_FILE, or the usual ones].",
    ),
    click.option(
        "--cert",
        "cert_file",
        cls=ServerOption,
        envvar="GPUCREDITS_CERT",
        show_envvar=True,
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="The certificate to show at an https address, such as a node's.",
    ),
    click.option(
        "--cert-key",
        "cert_key_file",
        cls=ServerOption,
        envvar="GPUCREDITS_CERT_KEY",
        show_envvar=True,
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="The private key of that certificate, if it is in another file.",
    ),
]
