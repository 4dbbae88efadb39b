"""Accounts on the wire: creating, changing, listing, balances and trees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct, field

from gpucredits.core.account import Account, Model, Status, lineage, scope_of
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
    """Change what is given, leave the rest.

    ``overdraft_limit`` is how much the house covers in all for jobs that end on an overdraft.
    """

    model: ModelName | None = None
    credit_limit: Credits | None = None
    overdraft_limit: Credits | None = None
    metadata: Metadata | None = None


class AccountAnswer(Struct, kw_only=True):
    """An account and its terms."""

    path: str
    scope: ScopeName
    model: ModelName
    credit_limit: CreditsText
    overdraft_limit: CreditsText
    delinquent: bool
    status: StatusName
    created_at: InstantText
    metadata: dict[str, str]


class AccountPage(Struct, kw_only=True):
    """Accounts in order of path."""

    accounts: list[AccountAnswer]
    next_cursor: str | None = None


class BalanceAnswer(Struct, kw_only=True):
    """What an account, or its whole subtree, holds at an instant.

    ``pending`` and ``overrun`` are told of now, and are null in answers about the past;
    ``credit_limit`` is told of one postpaid account now.
    """

    account: str
    scope: ScopeName
    available: CreditsText
    reserved: CreditsText
    spent: CreditsText
    pending: CreditsText | None
    overrun: CreditsText | None
    version: int
    as_of: InstantText
    credit_limit: CreditsText | None = None
    tree: bool = False


class BucketsAnswer(Struct, kw_only=True):
    """The three buckets of an account, or of a subtree."""

    available: CreditsText
    reserved: CreditsText
    spent: CreditsText


class TreeNode(Struct, kw_only=True):
    """An account, what is its own, what is its whole subtree's, and its children."""

    path: str
    scope: ScopeName
    model: ModelName
    status: StatusName
    own: BucketsAnswer
    subtree: BucketsAnswer
    children: list[TreeNode]


class TreeAnswer(Struct, kw_only=True):
    """A subtree as it stands."""

    root: TreeNode
    as_of: InstantText


def create_from_wire(request: AccountRequest) -> CreateAccount:
    """The core's command."""
    return CreateAccount(
        path=str(request.path),
        model=_MODELS[request.model],
        credit_limit=int(request.credit_limit),
        metadata=dict(request.metadata or {}),
    )


def change_from_wire(path: str, request: AccountChange) -> UpdateAccount:
    """The core's command; an account that becomes prepaid keeps no limit to come back later."""
    limit = 0 if request.model == "prepaid" else request.credit_limit
    return UpdateAccount(
        path=path,
        model=None if request.model is None else _MODELS[request.model],
        credit_limit=None if limit is None else int(limit),
        metadata=None if request.metadata is None else dict(request.metadata),
        overdraft_limit=None if request.overdraft_limit is None else int(request.overdraft_limit),
    )


def account_to_wire(account: Account) -> AccountAnswer:
    """The account as it is shown."""
    return AccountAnswer(
        path=account.path,
        scope=scope_name(account.path),
        model=model_name(account.model),
        credit_limit=format_credits(account.credit_limit),
        overdraft_limit=format_credits(account.overdraft_limit),
        delinquent=account.delinquent,
        status=status_name(account.status),
        created_at=format_instant(account.created_at),
        metadata=account.metadata,
    )


def tree_to_wire(accounts: Sequence[Account]) -> TreeNode:
    """The tree that accounts in order of path make; the first is its root."""
    nodes: dict[str, TreeNode] = {}
    sums: dict[str, list[int]] = {account.path: [0, 0, 0] for account in accounts}
    for account in accounts:
        own = (account.available, account.reserved, account.spent)
        for path in lineage(account.path):
            if path in sums:
                sums[path] = [total + each for total, each in zip(sums[path], own, strict=True)]
    for account in accounts:
        node = TreeNode(
            path=account.path,
            scope=scope_name(account.path),
            model=model_name(account.model),
            status=status_name(account.status),
            own=_buckets(account.available, account.reserved, account.spent),
            subtree=_buckets(*sums[account.path]),
            children=[],
        )
        nodes[account.path] = node
        parent = nodes.get(account.path.rpartition("/")[0])
        if parent is not None:
            parent.children.append(node)
    return nodes[accounts[0].path]


def _buckets(available: int, reserved: int, spent: int) -> BucketsAnswer:
    return BucketsAnswer(
        available=format_credits(available),
        reserved=format_credits(reserved),
        spent=format_credits(spent),
    )


def status_name(status: Status) -> StatusName:
    """The word for a status."""
    return "suspended" if status is Status.SUSPENDED else "active"


def model_name(model: Model) -> ModelName:
    """The word for a model."""
    return "postpaid" if model is Model.POSTPAID else "prepaid"


def scope_name(path: str) -> ScopeName:
    """Org, project or user, by depth."""
    names: dict[str, ScopeName] = {"org": "org", "project": "project", "user": "user"}
    return names[scope_of(path)]
