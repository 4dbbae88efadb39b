"""``token``: signed lease tokens, and the keys that sign them."""

from __future__ import annotations

import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from gpucredits.cli.terminal import output, values
from gpucredits.cli.terminal.grammar import Command, Group
from gpucredits.cli.terminal.session import Session, Write, calls, writes
from gpucredits.client import calls as client_calls
from gpucredits.client.tokens import LEEWAY_S, verify_token
from gpucredits.wire.access.tokens import (
    LeaseClaims,
    RedeemAnswer,
    SigningKeyAnswer,
    SigningKeyList,
    TokenAnswer,
    TokenRefused,
)
from gpucredits.wire.scalars import format_instant

STDIN: Final = "-"
SECOND_US: Final = 1_000_000
_TOKEN = click.argument("token", envvar="GPUCREDITS_LEASE_TOKEN")
_RESERVATION = click.option("--reservation", help="The lease that the token must be for.")
_NODE = click.option("--node", help="The node that the token must be for.")


@click.group(cls=Group)
def token() -> None:
    """Lease tokens: proof that a lease lets a job run on a node."""


@token.command("issue")
@click.argument("reservation_id")
@calls
def issue(session: Session, reservation_id: str) -> None:
    """Get a token for a live lease; the token expires at the lease's present end."""
    session.run(client_calls.lease_token(reservation_id), show_token)


@token.command("verify", cls=Command)
@_TOKEN
@click.option(
    "--jwks",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The published keys, as gpucredits token jwks printed them.",
)
@_RESERVATION
@_NODE
@click.option("--at", type=values.instant, help="The instant to check for. Default: now.")
@click.option(
    "--leeway",
    type=click.IntRange(0, 300),
    default=LEEWAY_S,
    show_default=True,
    help="The tolerated difference of clocks, in seconds.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the claims as JSON.")
def verify(
    *,
    token: str,
    jwks: Path,
    reservation: str | None,
    node: str | None,
    at: Any,
    leeway: int,
    as_json: bool,
) -> None:
    """Check a token without asking a server; exit code 1 if it is refused. - reads stdin."""
    now_s = int(time.time() if at is None else _seconds(at))
    try:
        claims = verify_token(
            read_token(token),
            jwks.read_bytes(),
            now_s=now_s,
            reservation_id=reservation,
            node=node,
            leeway_s=leeway,
        )
    except TokenRefused as refused:
        if as_json:
            told = {"title": "Refused", "reason": refused.reason, "detail": str(refused)}
            output.print_json(msgspec.json.encode(told))
        else:
            output.say(f"Refused ({refused.reason}): {refused}", err=True)
        raise click.exceptions.Exit(output.EXIT_REFUSED) from refused
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"token verify needs {error.name}: pip install 'gpucredits[tokens]'"
        ) from error
    if as_json:
        output.print_json(msgspec.json.encode(claims))
    else:
        show_claims(claims)


@token.command("redeem")
@_TOKEN
@_RESERVATION
@_NODE
@writes
def redeem(
    session: Session, token: str, *, reservation: str | None, node: str | None, write: Write
) -> None:
    """Redeem a token before its job starts; the server refuses a token that was used before."""
    call = client_calls.redeem_token(
        read_token(token), reservation_id=reservation, node=node, **write
    )
    session.run(call, show_redeemed)


@token.command("jwks")
@calls
def jwks(session: Session) -> None:
    """Print the public keys, for verify --jwks."""
    with session.client() as client:
        output.print_json(client.fetch(client_calls.jwks()).body)


@token.command("keys")
@calls
def keys(session: Session) -> None:
    """List the signing keys, the latest first."""
    session.run(client_calls.signing_keys(), show_keys)


@token.command("rotate")
@click.option(
    "--signs-in",
    "signs_in_ms",
    type=values.duration,
    default="10m",
    show_default=True,
    help="The time from publishing the new key to signing with it; 0s for none.",
)
@writes
def rotate(session: Session, *, signs_in_ms: int, write: Write) -> None:
    """Make a new signing key; tokens of the old key stay valid until they expire."""
    call = client_calls.rotate_signing_key(signs_in_seconds=signs_in_ms // 1_000, **write)
    session.run(call, show_key)


@token.command("revoke-key")
@click.argument("signing_key_id")
@writes
def revoke_key(session: Session, signing_key_id: str, *, write: Write) -> None:
    """Revoke a stolen signing key: all of its tokens become invalid."""
    session.run(client_calls.revoke_signing_key(signing_key_id, **write), show_keys)


def read_token(text: str) -> str:
    """The token that was given, or the one on stdin."""
    return (sys.stdin.read(100_000) if text == STDIN else text).strip()


def _seconds(at: Any) -> float:
    moment = at.at(datetime.fromtimestamp(time.time()).astimezone()) if hasattr(at, "at") else at
    return float(moment.timestamp())


def show_token(answer: TokenAnswer) -> None:
    """The token alone, as scripts want it; --json has the rest."""
    click.echo(answer.token)


def show_claims(claims: LeaseClaims) -> None:
    """The claims of a valid token."""
    output.print_facts(
        [
            ("reservation", claims.sub),
            ("account", claims.account),
            ("job", claims.job_id),
            ("node", claims.node),
            ("GPUs", f"{claims.gpu_count} x {claims.gpu_type}"),
            ("credits an hour", claims.rate_per_hour),
            ("expires", output.instant(format_instant(claims.exp * SECOND_US))),
        ]
    )


def show_redeemed(answer: RedeemAnswer) -> None:
    """The lease and the node of a redeemed token."""
    output.print_facts(
        [
            ("reservation", answer.reservation_id),
            ("account", answer.account),
            ("job", answer.job_id),
            ("node", answer.node),
            ("GPUs", f"{answer.gpu_count} x {answer.gpu_type}"),
            ("credits an hour", answer.rate_per_hour),
        ]
    )


def show_key(answer: SigningKeyAnswer) -> None:
    """A new key."""
    output.print_facts(
        [
            ("signing key", answer.key_id),
            ("state", answer.state),
            ("signs from", output.instant(answer.signs_from)),
        ]
    )


def show_keys(answer: SigningKeyList) -> None:
    """Signing keys."""
    output.print_table(
        ["signing key", "state", "made", "signs from", "revoked"],
        [
            [
                each.key_id,
                each.state,
                output.instant(each.created_at),
                output.instant(each.signs_from),
                output.instant(each.revoked_at),
            ]
            for each in answer.signing_keys
        ],
        empty="No signing keys: the first token makes one.",
    )
