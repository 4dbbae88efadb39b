"""``ca``: a certificate authority for trials of TLS between nodes and a server."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

import click
import msgspec

from gpucredits.cli.node.certificates import Issued, Kind, issue_certificate, new_authority
from gpucredits.cli.terminal import output
from gpucredits.cli.terminal.grammar import Group

FOLDER: Final = Path("gpucredits-ca")
AUTHORITY: Final = "ca"
AUTHORITY_DAYS: Final = 3_650
DAYS: Final = 30
DAYS_MAX: Final = 36_500
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}", re.ASCII)


def checked_name(context: click.Context, option: click.Parameter, name: str) -> str:
    """The name itself, if a file and a certificate can have it."""
    if _NAME.fullmatch(name) is None or name == AUTHORITY:
        raise click.BadParameter(
            f"{name!r} must be letters, digits, dots, dashes and underscores, and not 'ca'.",
            context,
            option,
        )
    return name


_DIR = click.option(
    "--dir",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=FOLDER,
    show_default=True,
    help="Where the authority and its certificates are.",
)
_FOR = click.option(
    "--days",
    type=click.IntRange(1, DAYS_MAX),
    default=DAYS,
    show_default=True,
    help="How long the certificate is good.",
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print which files were made as JSON.")


@click.group(cls=Group)
def ca() -> None:
    """A certificate authority for trials of TLS.

    All files are in one folder. In production use the authority that you have: a node's
    certificate names the node.
    """


@ca.command("init")
@_DIR
@click.option("--days", type=click.IntRange(1, DAYS_MAX), default=AUTHORITY_DAYS, show_default=True)
@_JSON
def init(*, folder: Path, days: int, as_json: bool) -> None:
    """Make the authority: ca.pem to hand out, and ca.key to keep."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _save(
        folder, AUTHORITY, new_authority("gpucredits trial authority", days=days), as_json=as_json
    )


@ca.command("server")
@click.argument("hosts", nargs=-1, required=True)
@_DIR
@_FOR
@_JSON
def server(*, hosts: tuple[str, ...], folder: Path, days: int, as_json: bool) -> None:
    """Sign a certificate for a server's host names and addresses."""
    _sign(folder, "server", hosts[0], file="server", hosts=hosts, days=days, as_json=as_json)


@ca.command("node")
@click.argument("name", callback=checked_name)
@_DIR
@_FOR
@_JSON
def node(*, name: str, folder: Path, days: int, as_json: bool) -> None:
    """Sign a certificate for a node; its holder acts for leases of that node only."""
    _sign(folder, "node", name, file=f"node-{name}", days=days, as_json=as_json)


@ca.command("client")
@click.argument("name", callback=checked_name)
@_DIR
@_FOR
@_JSON
def client(*, name: str, folder: Path, days: int, as_json: bool) -> None:
    """Sign a certificate for a person or a program that is no node."""
    _sign(folder, "client", name, file=f"client-{name}", days=days, as_json=as_json)


def _sign(
    folder: Path,
    kind: Kind,
    name: str,
    *,
    file: str,
    hosts: tuple[str, ...] = (),
    days: int,
    as_json: bool,
) -> None:
    place = folder / f"{AUTHORITY}.pem"
    try:
        authority = Issued(place.read_bytes(), (folder / f"{AUTHORITY}.key").read_bytes())
        made = issue_certificate(authority, kind, name, hosts=hosts, days=days)
    except FileNotFoundError:
        raise click.ClickException(
            f"there is no authority in {folder}: run gpucredits ca init"
        ) from None
    except (OSError, TypeError, ValueError) as error:
        raise click.ClickException(f"{name} cannot be signed: {error}") from error
    _save(folder, file, made, as_json=as_json)


def _save(folder: Path, name: str, made: Issued, *, as_json: bool) -> None:
    """Write a certificate and its key, which are not there yet; only their owner reads the key.

    Then say where they are.
    """
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    there = [str(each) for each in (certificate, key) if each.exists()]
    if there:
        words = (
            "is there already: remove it" if len(there) == 1 else "are there already: remove both"
        )
        raise click.ClickException(f"{' and '.join(there)} {words} first")
    try:
        for path, content, mode in ((key, made.key, 0o600), (certificate, made.certificate, 0o644)):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            with os.fdopen(os.open(path, flags, mode), "wb") as file:
                file.write(content)
    except FileExistsError as error:
        raise click.ClickException(f"{error.filename} is there already: remove it first") from None
    except OSError as error:
        raise click.ClickException(f"cannot write: {error}") from error
    if as_json:
        files = {"certificate": str(certificate.absolute()), "key": str(key.absolute())}
        output.print_json(msgspec.json.encode(files))
    else:
        output.print_facts([("certificate", str(certificate)), ("key", str(key))])
