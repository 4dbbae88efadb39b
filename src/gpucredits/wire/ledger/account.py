"""Accounts on the wire: creating, changing, listing, balances and trees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import UNSET, Struct, UnsetType, field, structs

from gpucredits.core.account import Account, Funding, Model, Status, lineage, scope_of
from gpucredits.core.command import CreateAccount, UpdateAccount
from gpucredits.core.money import format_credits
from gpucredits.wire.documented import (
    ACCOUNT,
    AS_OF,
    AVAILABLE,
    CREATED_AT,
    CREDIT_LIMIT,
    FUNDING,
    METADATA,
    MODEL,
    NEXT_CURSOR,
    OVERDRAFT_LIMIT,
    SCOPE,
    STATUS,
    WINDOW_MAX_SECONDS,
    doc,
)
from gpucredits.wire.scalars import (
    AccountPath,
    Credits,
    CreditsText,
    InstantText,
    Metadata,
    MetadataChange,
    WindowMaxSeconds,
    format_instant,
)
from gpucredits.wire.words import AUTHORITY_NAMES, AuthorityName

ModelName = Literal["prepaid", "postpaid"]
StatusName = Literal["active", "suspended"]
ScopeName = Literal["org", "project", "user"]
FundingName = Literal["own", "shared"]

_FUNDINGS: dict[FundingName, Funding] = {"own": Funding.OWN, "shared": Funding.SHARED}
_MODELS: dict[ModelName, Model] = {"prepaid": Model.PREPAID, "postpaid": Model.POSTPAID}


class AccountRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Open a wallet; its parent must exist."""

    path: Annotated[AccountPath, ACCOUNT]
    model: Annotated[ModelName, MODEL] = "prepaid"
    credit_limit: Annotated[Credits, CREDIT_LIMIT] = field(default_factory=lambda: Credits(0))
    metadata: Annotated[Metadata | None, METADATA] = None
    funding: Annotated[FundingName | None, FUNDING] = None


class AccountChange(Struct, kw_only=True, forbid_unknown_fields=True):
    """The terms of an account to change; terms that are left out stay as they are.

    A null limit is 0. ``overdraft_limit`` is the most that the house covers in total for jobs that
    end on an overdraft. In ``metadata``, given labels change and null labels go.
    ``window_max_seconds`` bounds the leases of the account and of all below it.
    """

    model: Annotated[ModelName | UnsetType, MODEL] = UNSET
    credit_limit: Annotated[
        Credits | UnsetType | None, doc("How far a postpaid account may go below zero.")
    ] = UNSET
    overdraft_limit: Annotated[Credits | UnsetType | None, OVERDRAFT_LIMIT] = UNSET
    window_max_seconds: Annotated[WindowMaxSeconds | UnsetType | None, WINDOW_MAX_SECONDS] = UNSET
    metadata: Annotated[MetadataChange | UnsetType | None, METADATA] = UNSET
    funding: Annotated[FundingName | UnsetType, FUNDING] = UNSET


class AccountTerms(Struct, kw_only=True, forbid_unknown_fields=True):
    """All terms and labels of an account; what is left out gets its default, except funding.

    Funding that is left out stays as it is, because allocations decide about it.
    """

    model: Annotated[ModelName, MODEL] = "prepaid"
    credit_limit: Annotated[Credits, doc("How far a postpaid account may go below zero.")] = field(
        default_factory=lambda: Credits(0)
    )
    overdraft_limit: Annotated[Credits, OVERDRAFT_LIMIT] = field(default_factory=lambda: Credits(0))
    window_max_seconds: Annotated[WindowMaxSeconds, WINDOW_MAX_SECONDS] = 0
    metadata: Annotated[Metadata | None, METADATA] = None
    funding: Annotated[FundingName | None, FUNDING] = None


class AccountAnswer(Struct, kw_only=True):
    """An account and its terms."""

    path: Annotated[str, ACCOUNT]
    scope: Annotated[ScopeName, SCOPE]
    funding: Annotated[FundingName, FUNDING]
    model: Annotated[ModelName, MODEL]
    credit_limit: Annotated[CreditsText, CREDIT_LIMIT]
    overdraft_limit: Annotated[CreditsText, OVERDRAFT_LIMIT]
    window_max_seconds: Annotated[WindowMaxSeconds, WINDOW_MAX_SECONDS]
    delinquent: Annotated[
        bool,
        doc("Whether the account is suspended because a statement is unpaid past its due date."),
    ]
    status: Annotated[StatusName, STATUS]
    suspended_by_scope: Annotated[
        AuthorityName | None,
        doc("The scope of the key that suspended the account; null if nobody has."),
    ]
    created_at: Annotated[InstantText, CREATED_AT]
    metadata: Annotated[dict[str, str], METADATA]


class StatusAnswer(AccountAnswer, kw_only=True):
    """An account that was suspended or resumed, and what else keeps it from admitting work."""

    note: Annotated[
        str | None, doc("What else keeps the account from admitting work; null if nothing does.")
    ]


class AccountPage(Struct, kw_only=True):
    """Accounts in order of path."""

    accounts: Annotated[list[AccountAnswer], doc("The accounts of this page.")]
    next_cursor: Annotated[str | None, NEXT_CURSOR] = None


class SpendableThrough(Struct, kw_only=True):
    """An account above whose credits may be spent too, and how much it can spend now.

    An account that the caller's key does not see is ``an account above`` with a null amount.
    """

    account: Annotated[str, ACCOUNT]
    spendable: Annotated[
        CreditsText | None, doc("Credits of its own that the account can spend now.")
    ]


class BalanceAnswer(Struct, kw_only=True):
    """What an account, or its whole subtree, holds at an instant.

    ``pending`` and ``overrun`` are null in answers about the past. Only the present balance of one
    postpaid account has a ``credit_limit``. ``spendable`` is what one account can spend of its own
    credits now. ``spendable_through`` lists the accounts above that pay when its own credits are
    too few.
    """

    account: Annotated[str, doc("The account of the request.")]
    scope: Annotated[ScopeName, SCOPE]
    available: Annotated[CreditsText, AVAILABLE]
    reserved: Annotated[CreditsText, doc("Credits that live leases hold.")]
    spent: Annotated[CreditsText, doc("Credits that were settled.")]
    pending: Annotated[
        CreditsText | None, doc("Top-ups that are not confirmed yet; null for the past.")
    ]
    overrun: Annotated[
        CreditsText | None,
        doc("Credits the house covered and collects from later credits; null for the past."),
    ]
    version: Annotated[int, doc("A number that rises with every change of the balance.")]
    as_of: Annotated[InstantText, AS_OF]
    credit_limit: Annotated[CreditsText | None, CREDIT_LIMIT] = None
    tree: Annotated[bool, doc("Whether everything below the account is included.")] = False
    funding: Annotated[
        FundingName | None, doc("Whose credits the account may spend; null for trees and the past.")
    ] = None
    spendable: Annotated[
        CreditsText | None,
        doc("Credits of its own that the account can spend; null for trees and the past."),
    ] = None
    spendable_through: Annotated[
        list[SpendableThrough] | None,
        doc(
            "Accounts above that pay when its own credits are too few; null for trees and the past."
        ),
    ] = None


class BucketsAnswer(Struct, kw_only=True):
    """The three buckets of an account, or of a subtree."""

    available: Annotated[CreditsText, AVAILABLE]
    reserved: Annotated[CreditsText, doc("Credits that live leases hold.")]
    spent: Annotated[CreditsText, doc("Credits that were settled.")]


class TreeNode(Struct, kw_only=True):
    """An account with its own balance, the balance of its whole subtree, and its children."""

    path: Annotated[str, ACCOUNT]
    scope: Annotated[ScopeName, SCOPE]
    model: Annotated[ModelName, MODEL]
    status: Annotated[StatusName, STATUS]
    own: Annotated[BucketsAnswer, doc("The account's own balance.")]
    subtree: Annotated[
        BucketsAnswer, doc("The balance of the account and everything below it together.")
    ]
    children: Annotated[list[TreeNode], doc("The accounts directly below this one.")]


class TreeAnswer(Struct, kw_only=True):
    """A subtree as it stands."""

    root: Annotated[TreeNode, doc("The account of the request.")]
    as_of: Annotated[InstantText, AS_OF]


def create_from_wire(request: AccountRequest) -> CreateAccount:
    """The core's command."""
    return CreateAccount(
        path=str(request.path),
        model=_MODELS[request.model],
        credit_limit=int(request.credit_limit),
        metadata=dict(request.metadata or {}),
        funding=None if request.funding is None else _FUNDINGS[request.funding],
    )


def change_from_wire(path: str, change: AccountChange) -> UpdateAccount:
    """The core's command; an account that becomes prepaid keeps no limit to come back later."""
    labels = change.metadata
    return UpdateAccount(
        path=path,
        model=None if change.model is UNSET else _MODELS[change.model],
        credit_limit=0 if change.model == "prepaid" else _limit(change.credit_limit),
        metadata={} if labels is None else None,
        labels=dict(labels) if isinstance(labels, dict) else None,
        overdraft_limit=_limit(change.overdraft_limit),
        funding=None if change.funding is UNSET else _FUNDINGS[change.funding],
        window_max_ms=_window(change.window_max_seconds),
    )


def terms_from_wire(path: str, terms: AccountTerms) -> UpdateAccount:
    """The core's command, which replaces all terms and labels."""
    return UpdateAccount(
        path=path,
        model=_MODELS[terms.model],
        credit_limit=int(terms.credit_limit),
        metadata=dict(terms.metadata or {}),
        overdraft_limit=int(terms.overdraft_limit),
        window_max_ms=terms.window_max_seconds * 1_000,
        funding=None if terms.funding is None else _FUNDINGS[terms.funding],
    )


def _limit(value: Credits | UnsetType | None) -> int | None:
    """A limit that is named, 0 for null; None where it is not named."""
    return None if isinstance(value, UnsetType) else int(value or 0)


def account_to_wire(account: Account) -> AccountAnswer:
    """The account as it is shown."""
    return AccountAnswer(
        path=account.path,
        scope=scope_name(account.path),
        funding=funding_name(account.funding),
        model=model_name(account.model),
        credit_limit=format_credits(account.credit_limit),
        overdraft_limit=format_credits(account.overdraft_limit),
        window_max_seconds=account.window_max_ms // 1_000,
        delinquent=account.delinquent,
        status=status_name(account.status),
        suspended_by_scope=suspended_by_scope(account),
        created_at=format_instant(account.created_at),
        metadata=account.metadata,
    )


def suspended_by_scope(account: Account) -> AuthorityName | None:
    """The scope of the key that suspended an account; None while nobody has."""
    if account.status is not Status.SUSPENDED:
        return None
    return AUTHORITY_NAMES[account.suspended_by]


def status_to_wire(account: Account, note: str | None) -> StatusAnswer:
    """The account as it is shown after a change of its status."""
    return StatusAnswer(**structs.asdict(account_to_wire(account)), note=note)


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


def funding_name(funding: Funding) -> FundingName:
    """The word for whose credits an account may spend."""
    return "shared" if funding is Funding.SHARED else "own"


def model_name(model: Model) -> ModelName:
    """The word for a model."""
    return "postpaid" if model is Model.POSTPAID else "prepaid"


def scope_name(path: str) -> ScopeName:
    """Org, project or user, by depth."""
    names: dict[str, ScopeName] = {"org": "org", "project": "project", "user": "user"}
    return names[scope_of(path)]


def _window(change: int | UnsetType | None) -> int | None:
    """A bound on leases in ms, 0 where it is lifted; None where it stays."""
    return None if isinstance(change, UnsetType) else (change or 0) * 1_000
