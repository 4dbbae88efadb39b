"""A rule of the ledger as a question to the database."""

from __future__ import annotations

from typing import NamedTuple


class Check(NamedTuple):
    """A rule: its name, what it claims, and the query for rows that break it."""

    name: str
    claim: str
    query: str


def terms_as_told(
    name: str, claim: str, table: str, *, shown: str, same: str, acts: tuple[str, ...]
) -> Check:
    """The rule that terms of accounts are what the last act about each account's terms says.

    The terms are ``t`` and the state in the audit log is ``l.new``. An act that ends terms tells no
    new state. ``same`` compares the two, and ``shown`` are the columns of a finding.
    """
    named = ", ".join(f"'{act}'" for act in acts)
    return Check(
        name,
        claim,
        f"""SELECT coalesce(t.org_id, l.org_id) AS org_id, t.account_id, {shown}, l.resource, l.new
        FROM (
            SELECT t.*, a.path FROM {table} t
            LEFT JOIN accounts a ON a.org_id = t.org_id AND a.account_id = t.account_id
        ) AS t
        FULL JOIN (
            SELECT * FROM (
                SELECT DISTINCT ON (org_id, resource) org_id, resource, action, new FROM audit_log
                WHERE action IN ({named}) ORDER BY org_id, resource, place DESC
            ) AS last WHERE new IS NOT NULL OR action NOT LIKE '%.end'
        ) AS l ON l.org_id = t.org_id AND l.resource = t.path
        WHERE ({same}) IS NOT TRUE""",  # noqa: S608  # constant texts only
    )
