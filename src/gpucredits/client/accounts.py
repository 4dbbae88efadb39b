"""Calls about accounts: opening, changing, listing, balances and trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpucredits.client.call import Call, Number, Setting, When, account_path, body_of, read, write
from gpucredits.wire.account import (
    AccountAnswer,
    AccountChange,
    AccountPage,
    AccountRequest,
    AccountTerms,
    BalanceAnswer,
    FundingName,
    ModelName,
    StatusAnswer,
    StatusName,
    TreeAnswer,
)


def create_account(
    path: str,
    *,
    model: ModelName | None = None,
    credit_limit: Number | None = None,
    metadata: Mapping[str, str] | None = None,
    funding: FundingName | None = None,
    key: str | None = None,
    dry_run: bool = False,
) -> Call[AccountAnswer]:
    """Open a wallet such as ``acme``, ``acme/vision`` or ``acme/vision/alice``."""
    body = body_of(
        AccountRequest,
        path=path,
        model=model,
        credit_limit=credit_limit,
        metadata=metadata,
        funding=funding,
    )
    return write("/v1/accounts", AccountAnswer, body=body, key=key, dry_run=dry_run)


def update_account(  # noqa: PLR0913  # one argument for each field of the request
    path: str,
    *,
    model: ModelName | None = None,
    credit_limit: Number | None = None,
    overdraft_limit: Number | None = None,
    window_max_seconds: int | None = None,
    metadata: Mapping[str, str | None] | None = None,
    funding: FundingName | None = None,
    replace: bool = False,
    clear: Sequence[str] = (),
    key: str | None = None,
    dry_run: bool = False,
) -> Call[AccountAnswer]:
    """Change what is given and leave the rest; ``replace`` replaces all terms and labels.

    Of ``metadata`` the given labels change, and those that are None are removed. ``clear`` names
    fields that go back to their defaults.
    """
    fields = {
        "model": model,
        "credit_limit": credit_limit,
        "overdraft_limit": overdraft_limit,
        "window_max_seconds": window_max_seconds,
        "metadata": metadata,
        "funding": funding,
    }
    return Setting(replace=replace, clear=clear).call(
        account_path(path),
        AccountAnswer,
        change=AccountChange,
        whole=AccountTerms,
        fields=fields,
        key=key,
        dry_run=dry_run,
    )


def suspend(path: str, *, key: str | None = None, dry_run: bool = False) -> Call[StatusAnswer]:
    """Admit nothing more, and drain what runs."""
    return write(account_path(path, "/suspend"), StatusAnswer, key=key, dry_run=dry_run)


def resume(path: str, *, key: str | None = None, dry_run: bool = False) -> Call[StatusAnswer]:
    """Undo a suspension."""
    return write(account_path(path, "/resume"), StatusAnswer, key=key, dry_run=dry_run)


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
