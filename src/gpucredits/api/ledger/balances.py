"""Handlers of what accounts are and hold: one account, lists, balances, trees."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Struct

from gpucredits.api.http.call import ApiRequest, NoQuery, Routes
from gpucredits.api.http.errors import ProblemError, invalid
from gpucredits.api.http.paging import END_OF_ORG, PageQuery, page, path_cursor
from gpucredits.api.http.reasons import NO_ACCOUNT
from gpucredits.api.http.scope import (
    account_exists,
    account_filter,
    account_param,
    org_number,
    unknown_account,
)
from gpucredits.core.account import Account, Model, Status, org_of
from gpucredits.core.money import format_credits
from gpucredits.service.access.permissions import Permission
from gpucredits.service.reads.books import TREE_ACCOUNTS_MAX, Balance, TreeTooLarge
from gpucredits.service.reads.clock import read_clock
from gpucredits.service.reads.filters import AccountFilter
from gpucredits.wire.documented import doc
from gpucredits.wire.ledger.account import (
    AccountAnswer,
    AccountPage,
    BalanceAnswer,
    ModelName,
    SpendableThrough,
    StatusName,
    TreeAnswer,
    account_to_wire,
    funding_name,
    scope_name,
    tree_to_wire,
)
from gpucredits.wire.scalars import AccountPath, Instant, MetadataFilter, format_instant

ORGS_VISITED_MAX: Final = 200


route = Routes("accounts")


class AccountQuery(PageQuery, kw_only=True, forbid_unknown_fields=True):
    """Which accounts to list."""

    under: Annotated[AccountPath | None, doc("Only this account and those below it.")] = None
    model: Annotated[ModelName | None, doc("Only accounts of this model.")] = None
    status: Annotated[StatusName | None, doc("Only accounts in this status.")] = None
    metadata: Annotated[MetadataFilter | None, doc("Only accounts with these labels.")] = None


class BalanceQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """Whether the subtree is included, at which instant, and as known at which instant."""

    tree: Annotated[bool, doc("Include everything below the account.")] = False
    at: Annotated[Instant | None, doc("The instant to answer for; now unless given.")] = None
    known_at: Annotated[
        Instant | None,
        doc(
            "Answer with what was recorded by this instant; the earlier of at and known_at counts."
        ),
    ] = None


@route(
    "GET /v1/accounts/{account}",
    Permission.READ,
    reasons=NO_ACCOUNT,
    client="account(path:account)",
)
async def get_account(call: ApiRequest[None, NoQuery]) -> AccountAnswer:
    """Get one account and its terms."""
    path = account_param(call)
    account = await call.services.reads.account(path)
    if account is None:
        raise unknown_account(path)
    return account_to_wire(account)


@route("GET /v1/accounts", Permission.READ, reasons=NO_ACCOUNT, client="account_page()")
async def get_accounts(call: ApiRequest[None, AccountQuery]) -> AccountPage:
    """List accounts in order of path: all that the key sees, or one and those below it."""
    query = call.query
    under = account_filter(call, query.under)
    cursor = path_cursor(query)
    if under:
        await account_exists(call, await org_number(call, under), under)
        accounts = await _of_org(call, org_of(under), under, cursor, query.limit + 1)
    else:
        return await _of_all_orgs(call, cursor)
    accounts, following = page(accounts, query, lambda row: row.path)
    return AccountPage(
        accounts=[account_to_wire(account) for account in accounts], next_cursor=following
    )


@route(
    "GET /v1/accounts/{account}/balance",
    Permission.READ,
    reasons=NO_ACCOUNT,
    client="balance(path:account)",
)
async def get_balance(call: ApiRequest[None, BalanceQuery]) -> BalanceAnswer:
    """Get the balance of an account or its tree, now or ``at`` a past instant.

    ``known_at`` answers with what was recorded by that instant.
    """
    path, query = account_param(call), call.query
    try:
        balance = await call.services.reads.balance(
            path, at=query.at, known_at=query.known_at, tree=query.tree
        )
    except TreeTooLarge:
        raise too_many_below() from None
    if balance is None:
        raise unknown_account(path)
    return balance_to_wire(balance, tree=query.tree)


@route(
    "GET /v1/accounts/{account}/tree",
    Permission.READ,
    reasons=NO_ACCOUNT,
    client="tree(path:account)",
)
async def get_tree(call: ApiRequest[None, NoQuery]) -> TreeAnswer:
    """Get an account and everything below it, with balances."""
    path = account_param(call)
    wanted = AccountFilter(under=path, limit=TREE_ACCOUNTS_MAX + 1)
    accounts = await call.services.reads.accounts(org_of(path), wanted)
    if not accounts or accounts[0].path != path:
        raise unknown_account(path)
    if len(accounts) > TREE_ACCOUNTS_MAX:
        raise too_many_below()
    now = await call.services.run(read_clock)
    return TreeAnswer(root=tree_to_wire(accounts), as_of=format_instant(now))


def too_many_below() -> ProblemError:
    """The answer to who asks about a subtree, account by account, that has too many."""
    return invalid(
        "account", f"has more than {TREE_ACCOUNTS_MAX} accounts below it; ask for a subtree"
    )


def balance_to_wire(balance: Balance, *, tree: bool) -> BalanceAnswer:
    """The balance as it is shown."""
    return BalanceAnswer(
        account=balance.path,
        scope=scope_name(balance.path),
        available=format_credits(balance.available),
        reserved=format_credits(balance.reserved),
        spent=format_credits(balance.spent),
        pending=None if balance.pending is None else format_credits(balance.pending),
        overrun=None if balance.overrun is None else format_credits(balance.overrun),
        version=balance.version,
        as_of=format_instant(balance.as_of),
        credit_limit=None if balance.credit_limit is None else format_credits(balance.credit_limit),
        tree=tree,
        funding=None if balance.funding is None else funding_name(balance.funding),
        spendable=None if balance.spendable is None else format_credits(balance.spendable),
        spendable_through=None
        if balance.through is None
        else [
            SpendableThrough(account=path, spendable=format_credits(amount))
            for path, amount in balance.through
        ],
    )


async def _of_org(
    call: ApiRequest[None, AccountQuery], org: str, under: str, after: str, limit: int
) -> list[Account]:
    query = call.query
    return await call.services.reads.accounts(
        org,
        AccountFilter(
            under=under,
            model=None if query.model is None else int(Model[query.model.upper()]),
            status=None if query.status is None else int(Status[query.status.upper()]),
            metadata=dict(query.metadata) if query.metadata else None,
            after=after,
            limit=limit,
        ),
    )


async def _of_all_orgs(call: ApiRequest[None, AccountQuery], cursor: str) -> AccountPage:
    """A page over orgs in order; it may end early when many orgs have nothing to show."""
    found: list[Account] = []
    following: str | None
    limit = call.query.limit
    start = org_of(cursor) if cursor else ""
    orgs = await call.services.directory.orgs(start=start, limit=ORGS_VISITED_MAX + 1)
    for org in orgs[:ORGS_VISITED_MAX]:
        after = cursor if org == start else ""
        found.extend(await _of_org(call, org, "", after, limit + 1 - len(found)))
        if len(found) > limit:
            found, following = page(found, call.query, lambda row: row.path)
            break
    else:
        # A path above every account of the last org that was visited.
        following = (
            f"{orgs[ORGS_VISITED_MAX - 1]}{END_OF_ORG}" if len(orgs) > ORGS_VISITED_MAX else None
        )
    return AccountPage(
        accounts=[account_to_wire(account) for account in found], next_cursor=following
    )
