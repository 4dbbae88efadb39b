"""Accounts on the wire: creating, changing, listing, balances and trees."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from gpucredits.core.account import Account, Model, Status, scope_of
from gpucredits.core.command import CreateAccount, UpdateAccount
from gpucredits.core.money import format_credits
from gpucredits.wire.scalars import (
    AccountPath,
    Credits,
    CreditsText,
    InstantText,
    Metadata,
    format_instant,
)

ModelName = Literal["prepaid", "postpaid"]
StatusName = Literal["active", "suspended"]
ScopeName = Literal["org", "project", "user"]

_MODELS: dict[ModelName, Model] = {"prepaid": Model.PREPAID, "postpaid": Model.POSTPAID}


class AccountRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Open a wallet; its parent must exist."""

    path: AccountPath
    model: ModelName = "prepaid"
    credit_limit: Credits = field(default_factory=lambda: Credits(0))
    metadata: Metadata | None = None


class AccountChange(Struct, kw_only=True, forbid_unknown_fields=True):
    """Change what is given, leave the rest."""

    model: ModelName | None = None
    credit_limit: Credits | None = None
    metadata: Metadata | None = None


class AccountAnswer(Struct, kw_only=True):
    """An account and its terms."""

    path: str
    scope: ScopeName
    model: ModelName
    credit_limit: CreditsText
    status: StatusName
    created_at: InstantText
    metadata: dict[str, str]


class AccountPage(Struct, kw_only=True):
    """Accounts in order of path."""

    accounts: list[AccountAnswer]
    next_cursor: str | None = None


class BalanceAnswer(Struct, kw_only=True):
    """What an account, or its whole subtree, holds at an instant."""

    account: str
    scope: ScopeName
    available: CreditsText
    reserved: CreditsText
    spent: CreditsText
    pending: CreditsText
    debt: CreditsText
    overrun: CreditsText
    version: int
    as_of: InstantText
    tree: bool = False


class TreeNode(Struct, kw_only=True):
    """An account with its own balance, the sum of its subtree, and its children."""

    account: AccountAnswer
    balance: BalanceAnswer
    subtree: BalanceAnswer
    children: list[TreeNode]


def create_from_wire(request: AccountRequest) -> CreateAccount:
    """The core's command."""
    return CreateAccount(
        path=str(request.path),
        model=_MODELS[request.model],
        credit_limit=int(request.credit_limit),
        metadata=dict(request.metadata or {}),
    )


def change_from_wire(path: str, request: AccountChange) -> UpdateAccount:
    """The core's command."""
    return UpdateAccount(
        path=path,
        model=None if request.model is None else _MODELS[request.model],
        credit_limit=None if request.credit_limit is None else int(request.credit_limit),
        metadata=None if request.metadata is None else dict(request.metadata),
    )


def account_to_wire(account: Account) -> AccountAnswer:
    """The account as it is shown."""
    return AccountAnswer(
        path=account.path,
        scope=_scope(account.path),
        model=model_name(account.model),
        credit_limit=format_credits(account.credit_limit),
        status="suspended" if account.status is Status.SUSPENDED else "active",
        created_at=format_instant(account.created_at),
        metadata=account.metadata,
    )


def balance_to_wire(
    account: Account, *, as_of: int, pending: int = 0, tree: bool = False
) -> BalanceAnswer:
    """The balance as it is shown; ``account`` may be a sum over a subtree."""
    return BalanceAnswer(
        account=account.path,
        scope=_scope(account.path),
        available=format_credits(account.available),
        reserved=format_credits(account.reserved),
        spent=format_credits(account.spent),
        pending=format_credits(pending),
        debt=format_credits(account.debt),
        overrun=format_credits(account.overrun),
        version=account.version,
        as_of=format_instant(as_of),
        tree=tree,
    )


def model_name(model: Model) -> ModelName:
    """The word for a model."""
    return "postpaid" if model is Model.POSTPAID else "prepaid"


def _scope(path: str) -> ScopeName:
    names: dict[str, ScopeName] = {"org": "org", "project": "project", "user": "user"}
    return names[scope_of(path)]
