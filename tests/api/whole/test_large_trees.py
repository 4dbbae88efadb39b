"""Questions about a subtree, account by account: up to a bound, with a plain answer beyond."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import asyncpg
import pytest

from gpucredits.service.reads.books import TREE_ACCOUNTS_MAX
from support.servers.http import Caller, fresh_name

ADD = """
INSERT INTO accounts (org_id, account_id, parent_id, path, created_at, model, credit_limit,
    credit_limit_max, status, metadata, remaining, reserved, spent, debt, overrun, version, due_at)
SELECT a.org_id, 1000000 + n, a.account_id, a.path || '/many-' || n, a.created_at, a.model,
    a.credit_limit, a.credit_limit_max, a.status, a.metadata, 0, 0, 0, 0, 0, 1, a.due_at
FROM accounts a, generate_series(1, $2) AS n WHERE a.path = $1
"""


def execute(dsn: str, query: str, *values: object) -> None:
    """Change rows behind the server's back."""

    async def run() -> None:
        connection = await asyncpg.connect(dsn)
        try:
            await connection.execute(query, *values)
        finally:
            await connection.close()

    asyncio.run(run())


@pytest.fixture
def crowded(admin: Caller, database_of_server: str) -> Iterator[str]:
    """An org with a project that has as many accounts as may be asked about, itself included."""
    org = fresh_name("org")
    for path in (org, f"{org}/vision"):
        admin.made("/v1/accounts", {"path": path})
    execute(database_of_server, ADD, f"{org}/vision", TREE_ACCOUNTS_MAX - 1)
    yield org
    execute(
        database_of_server, "DELETE FROM accounts WHERE starts_with(path, $1)", f"{org}/vision/"
    )


def test_a_past_balance_of_a_tree_has_the_bound_of_the_tree(admin: Caller, crowded: str) -> None:
    """As many accounts as the bound are added up in one request; one more is told so."""
    at = admin.instant()
    for question in ("balance?tree=true", f"balance?tree=true&at={at}", "tree"):
        full = f"/v1/accounts/{crowded}/vision/{question}"
        assert admin.get(full.replace("+", "%2B")).status_code == 200
    assert admin.get(f"/v1/accounts/{crowded}/balance?tree=true").status_code == 200
    for question in (f"balance?tree=true&at={at}", "tree"):
        beyond = admin.get(f"/v1/accounts/{crowded}/{question}".replace("+", "%2B"))
        assert beyond.status_code == 422, beyond.text
        assert beyond.json()["field"] == "account"
        assert "more than 10000 accounts below it" in beyond.json()["detail"]
