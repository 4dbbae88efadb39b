"""Calls about accounts: opening, changing, listing, balances and trees."""

from __future__ import annotations

from collections.abc import Mapping

from gpucredits.client.call import Call, Number, When, account_path, body_of, read, write
from gpucredits.wire.account import (
    AccountAnswer,
    AccountChange,
    AccountPage,
    AccountRequest,
    BalanceAnswer,
    ModelName,
    StatusName,
    TreeAnswer,
)


def create_account(
    path: str,
    *,
    model: ModelName | None = None,
    credit_limit: Number | None = None,
    metadata: Mapping[str, str] | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[AccountAnswer]:
    """Open a wallet such as ``acme``, ``acme/vision`` or ``acme/vision/alice``."""
    body = body_of(
        AccountRequest, path=path, model=model, credit_limit=credit_limit, metadata=metadata
    )
    return write("/v1/accounts", AccountAnswer, body=body, key=key, dry_run=dry_run)


def update_account(
    path: str,
    *,
    model: ModelName | None = None,
    credit_limit: Number | None = None,
    overdraft_limit: Number | None = None,
    metadata: Mapping[str, str] | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[AccountAnswer]:
    """Change what is given and leave the rest."""
    body = body_of(
        AccountChange,
        model=model,
        credit_limit=credit_limit,
        overdraft_limit=overdraft_limit,
        metadata=metadata,
    )
    return write(
        account_path(path), AccountAnswer, body=body, key=key, dry_run=dry_run, method="PATCH"
    )


def suspend(path: str, *, key: str | None = None, dry_run: bool = False) -> Call[AccountAnswer]:
    """Admit nothing more, and drain what runs."""
    return write(account_path(path, "/suspend"), AccountAnswer, key=key, dry_run=dry_run)


def resume(path: str, *, key: str | None = None, dry_run: bool = False) -> Call[AccountAnswer]:
    """Undo a suspension."""
    return write(account_path(path, "/resume"), AccountAnswer, key=key, dry_run=dry_run)


def account(path: str) -> Call[AccountAnswer]:
    """One account and its terms."""
    return read(account_path(path), AccountAnswer)


def account_page(
    *,
    under: str | None = None,
    model: ModelName | None = None,
    status: StatusName | None = None,
    metadata: Mapping[str, str] | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[AccountPage]:
    """A page of accounts in order of path: all that the key sees, or one and those below it."""
    return read(
        "/v1/accounts",
        AccountPage,
        under=under,
        model=model,
        status=status,
        metadata=metadata,
        cursor=cursor,
        limit=limit,
    )


def tree(path: str) -> Call[TreeAnswer]:
    """An account and everything below it, with balances."""
    return read(account_path(path, "/tree"), TreeAnswer)


def balance(
    path: str, *, tree: bool = False, at: When | None = None, known_at: When | None = None
) -> Call[BalanceAnswer]:
    """What an account holds, now or ``at`` an instant, as was known then or is known now."""
    return read(
        account_path(path, "/balance"),
        BalanceAnswer,
        tree=tree or None,
        at=at,
        known_at=known_at,
    )
