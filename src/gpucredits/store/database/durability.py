"""Whether a database keeps what it acknowledges: a wrong setting voids every promise of a ledger.

Owns the list of settings that matter and what each must be. It must not change a setting: the
operator is told what is wrong and what would be right.

``synchronous_commit`` means "when is COMMIT answered". ``off`` answers before anything is on disk:
refused. ``on``, ``remote_write`` and ``remote_apply`` all wait for the local disk: accepted.
``local`` does too, but skips the synchronous standbys, so that a failover loses acknowledged
writes: accepted only where no synchronous standby is configured, and there it equals ``on``.

Page checksums are refused when off, because silent corruption of a ledger must not be served. Some
managed clouds do not let their users choose and protect pages below PostgreSQL: for those alone
there is an explicit override.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from asyncpg import Connection
    from asyncpg.pool import PoolConnectionProxy

VERSION_MIN = 150000
MUST_BE_ON = {
    "fsync": "a power cut destroys the database",
    "full_page_writes": "a power cut leaves torn pages that recovery cannot repair",
}
MUST_BE_OFF = {
    "zero_damaged_pages": "damaged pages are silently replaced by empty ones",
    "ignore_checksum_failure": "damaged pages are served as if they were sound",
    "default_transaction_read_only": "nothing can be written",
}
WAITS_FOR_DISK = frozenset({"on", "remote_write", "remote_apply"})
QUERY = """
SELECT name, setting FROM pg_settings
WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'synchronous_standby_names',
               'data_checksums', 'zero_damaged_pages', 'ignore_checksum_failure',
               'default_transaction_read_only', 'server_version_num', 'server_encoding')
UNION ALL
SELECT 'in_recovery', CASE WHEN pg_is_in_recovery() THEN 'on' ELSE 'off' END
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsafeSetting:
    """One setting that voids a promise."""

    setting: str
    value: str
    wanted: str
    why: str

    def __str__(self) -> str:
        """One sentence for the operator."""
        return f"{self.setting} is {self.value!r} and must be {self.wanted}: {self.why}"


class UnsafeDatabaseError(Exception):
    """The database would not keep what it acknowledges; says every setting to put right."""

    def __init__(self, findings: list[UnsafeSetting]) -> None:
        self.findings = findings
        super().__init__("refusing to use this database: " + "; ".join(map(str, findings)))

    @property
    def is_standby(self) -> bool:
        """Whether the only fault is that it is not the primary, or not yet."""
        return {each.setting for each in self.findings} <= {
            "in_recovery",
            "default_transaction_read_only",
        }


async def require_durable(
    connection: Connection[Any] | PoolConnectionProxy[Any], *, allow_no_checksums: bool = False
) -> None:
    """Raise ``UnsafeDatabaseError`` unless this session's database keeps what it acknowledges."""
    found = findings(await read_facts(connection), allow_no_checksums=allow_no_checksums)
    if found:
        raise UnsafeDatabaseError(found)


async def read_facts(connection: Connection[Any] | PoolConnectionProxy[Any]) -> dict[str, str]:
    """The settings that matter, as this session sees them."""
    return {row["name"]: row["setting"] for row in await connection.fetch(QUERY)}


def findings(facts: Mapping[str, str], *, allow_no_checksums: bool = False) -> list[UnsafeSetting]:
    """What is wrong with these settings; an absent one counts as wrong."""
    found = [
        UnsafeSetting(setting=name, value=facts.get(name, "absent"), wanted=wanted, why=why)
        for wanted, names in (("on", MUST_BE_ON), ("off", MUST_BE_OFF))
        for name, why in names.items()
        if facts.get(name, "absent") != wanted
    ]
    found += commit_findings(facts)
    checksums = facts.get("data_checksums", "absent")
    if checksums != "on" and not allow_no_checksums:
        why = "corrupted pages would go unnoticed (pg_checksums --enable turns them on)"
        found.append(UnsafeSetting(setting="data_checksums", value=checksums, wanted="on", why=why))
    version = facts.get("server_version_num", "0")
    if int(version) < VERSION_MIN:
        why = "older servers lack what the ledger's SQL relies on"
        wanted = f"at least {VERSION_MIN} (PostgreSQL 15)"
        found.append(
            UnsafeSetting(setting="server_version_num", value=version, wanted=wanted, why=why)
        )
    if (recovery := facts.get("in_recovery", "absent")) != "off":
        why = "this server is a standby and takes no writes; connect to the primary"
        found.append(UnsafeSetting(setting="in_recovery", value=recovery, wanted="off", why=why))
    if (encoding := facts.get("server_encoding", "absent")) != "UTF8":
        why = "names and metadata are Unicode; create the database with ENCODING 'UTF8'"
        found.append(
            UnsafeSetting(setting="server_encoding", value=encoding, wanted="UTF8", why=why)
        )
    return found


def commit_findings(facts: Mapping[str, str]) -> list[UnsafeSetting]:
    """What is wrong with when a commit is answered."""
    value = facts.get("synchronous_commit", "absent")
    standbys = facts.get("synchronous_standby_names", "")
    if value in WAITS_FOR_DISK or (value == "local" and not standbys):
        return []
    why = "a crash loses commits that were already acknowledged"
    if value == "local":
        why = f"a failover to {standbys} loses commits that were already acknowledged"
    wanted = "on, remote_write or remote_apply"
    return [UnsafeSetting(setting="synchronous_commit", value=value, wanted=wanted, why=why)]
