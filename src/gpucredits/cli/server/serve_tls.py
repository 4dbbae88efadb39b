"""The options of ``gpucredits serve`` about TLS, client certificates and signing keys."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from gpucredits.api.transport.context import TlsFiles
from gpucredits.api.transport.door import ShutOut
from gpucredits.service.access.refusals import Refusals, RefusedAct

TLS_ACTOR: Final = "system:tls"
_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


_OPTIONS: Final = [
    click.option(
        "--tls-cert",
        type=_FILE,
        envvar="GPUCREDITS_TLS_CERT",
        show_envvar=True,
        help="Serve HTTPS with this certificate (PEM, with those that signed it).",
    ),
    click.option(
        "--tls-key",
        type=_FILE,
        envvar="GPUCREDITS_TLS_KEY",
        show_envvar=True,
        help="The private key of the certificate (PEM).",
    ),
    click.option(
        "--client-ca",
        type=_FILE,
        envvar="GPUCREDITS_CLIENT_CA",
        show_envvar=True,
        help="Accept node certificates that this authority signed. Keys of agents, and keys "
        "bound to a node, are then refused without one.",
    ),
    click.option(
        "--require-client-cert",
        is_flag=True,
        help="Require a certificate of the authority on every connection, from people too.",
    ),
    click.option(
        "--signing-secret-file",
        type=click.Path(dir_okay=False, path_type=Path),
        envvar="GPUCREDITS_SIGNING_SECRET_FILE",
        show_envvar=True,
        help="The secret that seals the keys of lease tokens; servers of one database share it "
        "[default: signing.secret in the data directory, made at the first start].",
    ),
]


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """What was given on the command line; without files, HTTP goes unencrypted."""

    files: TlsFiles | None
    signing_secret_file: Path | None


def tls_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options, which it gets as ``tls``."""

    @functools.wraps(command)
    def with_tls(
        *args: Any,
        tls_cert: Path | None,
        tls_key: Path | None,
        client_ca: Path | None,
        require_client_cert: bool,
        signing_secret_file: Path | None,
        **given: Any,
    ) -> None:
        if (tls_cert is None) != (tls_key is None):
            raise click.UsageError("--tls-cert and --tls-key go together.")
        if client_ca is not None and tls_cert is None:
            raise click.UsageError("--client-ca needs --tls-cert and --tls-key.")
        if require_client_cert and client_ca is None:
            raise click.UsageError("--require-client-cert needs --client-ca.")
        files = None
        if tls_cert is not None and tls_key is not None:
            files = TlsFiles(
                certificate=tls_cert,
                key=tls_key,
                client_ca=client_ca,
                everybody=require_client_cert,
            )
        secret = None if signing_secret_file is None else signing_secret_file.absolute()
        command(*args, tls=TlsOptions(files, secret), **given)

    for option in reversed(_OPTIONS):
        with_tls = option(with_tls)
    return with_tls


def shut_out_to(refusals: Refusals) -> ShutOut:
    """What the door tells of a refused certificate, for the audit log."""

    def shut_out(address: str, why: str) -> None:
        refusals.add(
            RefusedAct(action="tls.refuse", reason=why, actor=TLS_ACTOR, resource=address),
            now=time.monotonic(),
        )

    return shut_out
