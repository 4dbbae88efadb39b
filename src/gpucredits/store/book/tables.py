"""Every table that a book is loaded from and saved to: each column is named here, and only here.

Owns: the columns with their types, the fields of the core rows, and what changes together. Loading,
saving, listings, verify and the parity tests follow from these declarations. After a change here
``make rows`` writes rows.py and the lists of columns in the SQL functions anew.
Must not: hold values or read anything.
"""

from __future__ import annotations

from gpucredits.core.account import Account
from gpucredits.core.book import Org
from gpucredits.core.budget import Budget, BudgetPeriod
from gpucredits.core.entry import Entry
from gpucredits.core.grant import Grant
from gpucredits.core.limits import Boost, TokenBucket
from gpucredits.core.price import Price
from gpucredits.core.quota import Counter, Quota, Tally
from gpucredits.core.reservation import (
    NO_PART,
    Decision,
    Exhaustion,
    Reservation,
    ReservationState,
    Why,
)
from gpucredits.core.topup import TopUpRow
from gpucredits.store.book.table import (
    BYTES,
    CALENDAR,
    FLAG,
    INTEGER,
    JSON,
    JSON_TEXT,
    KEY,
    NAME,
    NEVER,
    NUMBER,
    NUMBERS,
    OFTEN,
    PACKED,
    PAIRS,
    PERCENTS,
    RARELY,
    SMALL,
    TERM,
    TEXT,
    TRIPLES,
    Column,
    Table,
    TableWrite,
    code,
    columns,
)

ORG_ID = Column("org_id", NUMBER, KEY, "", NEVER, given=True)
SET_BY = code("AUTHORITIES[{}]")
ROLLOVER = code("ROLLOVERS[{}]")

ORG = Table(
    "orgs",
    "org",
    Org,
    (
        ORG_ID,
        Column("path", TEXT),
        *columns("next_id next_entry_id clock", written=OFTEN),
        Column("version", written=OFTEN, given=True),
        Column("gated", FLAG, RARELY, ""),
        Column("budgeted", FLAG, RARELY, ""),
    ),
    writes=(
        TableWrite("changed_orgs", "update", (KEY, OFTEN)),
        TableWrite(  # where limits or budgets came or went
            "changed_gated_orgs",
            "update",
            (KEY, OFTEN, RARELY),
            extra=(
                Column("has_new_limit", FLAG, attribute="", given=True),
                Column("has_new_budget", FLAG, attribute="", given=True),
                Column("ended", NUMBERS, attribute="", given=True),
            ),
            values={
                "budgeted": "t.budgeted OR x.has_new_budget",
                "gated": """x.has_new_limit
            OR EXISTS (SELECT 1 FROM quotas q WHERE q.org_id = x.org_id AND q.ended_at = 0
                AND q.quota_id <> ALL (string_to_array(x.ended, ',')::bigint[]))
            OR EXISTS (SELECT 1 FROM token_buckets b WHERE b.org_id = x.org_id AND b.ended_at = 0
                AND b.bucket_id <> ALL (string_to_array(x.ended, ',')::bigint[]))""",
            },
        ),
    ),
    is_listed=False,
)
ACCOUNT = Table(
    "accounts",
    "account",
    Account,
    (
        ORG_ID,
        Column("account_id", written=KEY),
        *columns("remaining reserved spent debt overrun promised version due_at", written=OFTEN),
        Column("model", code("MODELS[{}]"), RARELY),
        Column("credit_limit", written=RARELY),
        Column(
            "credit_limit_max",
            written=RARELY,
            attribute="",
            read=NEVER,
            set_sql="greatest(t.credit_limit_max, x.model * x.credit_limit)",
            insert_sql="x.model * x.credit_limit",
        ),
        Column(
            "floor",
            written=RARELY,
            attribute="",
            read=NEVER,
            set_sql="CASE WHEN (t.model, t.credit_limit) = (x.model, x.credit_limit) THEN t.floor"
            " ELSE least(-x.model * x.credit_limit, x.remaining - x.reserved - x.debt) END",
            insert_sql="least(-x.model * x.credit_limit, x.remaining - x.reserved - x.debt)",
        ),
        Column("status", code("STATUSES[{}]"), RARELY),
        Column("allocated", FLAG, RARELY),
        Column("metadata", JSON, RARELY),
        Column("delinquent", FLAG, RARELY),
        Column("overdraft_limit", written=RARELY),
        Column("funding", code("FUNDINGS[{}]"), RARELY, read=TERM),
        Column("window_max_ms", written=RARELY, read=TERM),
        Column("suspended_by", SET_BY, RARELY, read=TERM),
        Column("parent_id", attribute="", read=NEVER, given=True),
        Column("path", TEXT),
        Column("created_at"),
    ),
    writes=(
        TableWrite("changed_balances", "update", (KEY, OFTEN)),
        TableWrite("changed_settings", "update", (KEY, OFTEN, RARELY)),
        TableWrite("new_accounts", "insert"),
    ),
    kind=2,
    beside=(Column("is_bare", FLAG), Column("is_due", FLAG)),
)
GRANT = Table(
    "grants",
    "grant",
    Grant,
    (
        ORG_ID,
        Column("grant_id", written=KEY),
        *columns("amount remaining", written=OFTEN),
        Column("state", code("GRANT_STATES[{}]"), OFTEN),
        Column(
            "is_open",
            FLAG,
            OFTEN,
            "",
            NEVER,
            computed="row.remaining > 0 and row.state is not GrantState.ENDED",
        ),
        Column("claims", written=OFTEN),
        *columns("account_id starts_at expires_at"),
        Column("priority", INTEGER),
        Column("source", code("SOURCES[{}]")),
        *columns("origin_id created_at"),
        Column("metadata", JSON),
        Column("budget_id"),
    ),
    writes=(
        TableWrite("changed_grants", "update", (KEY, OFTEN)),
        TableWrite("new_grants", "insert"),
    ),
    kind=3,
)
LEASE = Table(
    "reservations",
    "lease",
    Reservation,
    (
        ORG_ID,
        Column("reservation_id", written=KEY),
        *columns("held settled used_ms seq expires_at", written=OFTEN),
        Column("paid", PAIRS, OFTEN),
        Column("state", code("LEASE_STATES[{}]"), RARELY, plain=ReservationState.ACTIVE),
        Column(
            "decision",
            code("DECISIONS[{}]", "NUMBER_OF_DECISION[{}]"),
            RARELY,
            plain=Decision.CONTINUE,
        ),
        Column("adjusted", written=RARELY, plain=0),
        Column("refunded", written=RARELY, plain=0),
        *columns("ended_at payer_id window_ms", written=RARELY),
        # Renewals leave the columns from here on as they are, and those of plain leases are not
        # read: so every one of them has the value that plain leases have, or is named by is_plain.
        Column("is_plain", FLAG, RARELY, "", NEVER, computed="is_plain(row)"),
        Column("extended_ms", written=RARELY, read=TERM, plain=0),
        Column("reprieve_ms", written=RARELY, read=TERM, plain=0),
        Column(
            "beat_at",
            written=RARELY,
            read=TERM,
            decode="max({}, row.beat_at - (row.extended_ms + row.reprieve_ms) * 1_000)",
            # one full lease before its end
            plain_value="expires_at - window_ms * (1 + escrow_windows) * 1_000",
            plain_python="row.beat_at"
            " <= row.expires_at - row.window_ms * (1 + row.escrow_windows) * 1_000",
            plain_sql="{0}.beat_at"
            " <= {0}.expires_at - {0}.window_ms * (1 + {0}.escrow_windows) * 1000",
            set_sql="greatest(t.beat_at, x.beat_at)",
            stored_sql="lease_beat_at({0}.beat_at, {0}.expires_at, {0}.window_ms,"
            " {0}.escrow_windows, {0}.extended_ms + {0}.reprieve_ms)",
        ),
        Column("overdrawn", written=RARELY, read=TERM, plain=0),
        Column("leaving", FLAG, RARELY, read=TERM, plain=False),
        Column("stopping_at", written=RARELY, read=TERM, plain=0),
        Column("why", code("WHYS[{}]", "NUMBER_OF_WHY[{}]"), RARELY, read=TERM, plain=Why.NONE),
        Column("promised", written=RARELY, read=TERM, plain=0),
        Column("cap_part", written=RARELY, read=TERM, plain=NO_PART),
        Column("cap_seen", written=RARELY, read=TERM, plain=0),
        Column("clears_at", written=RARELY, read=TERM, plain=0),
        Column("stopping_for", written=RARELY, read=TERM, plain=0),
        Column("authorised", written=RARELY, read=TERM, plain=0),
        Column("reconciled", written=RARELY, read=TERM, plain=0),
        Column("lost_ms", written=RARELY, read=TERM, plain=0),
        Column("kept", TRIPLES, RARELY, read=TERM, plain=()),
        Column("payers", PAIRS, RARELY, read=TERM, plain=()),
        Column("account", NAME),
        Column("account_id"),
        Column("job_id", TEXT, decode='{} or ""'),  # not read where the org has no limits
        Column("gpu_type", TEXT, read=PACKED),
        Column("milli_gpus"),
        Column("region", TEXT, read=PACKED),
        Column("node", TEXT, read=NEVER, unread='""'),
        Column("price"),
        Column("price_id", read=NEVER, unread="0"),
        *columns("admitted_at escrow_windows max_amount"),
        Column("first_entry_id", attribute="", read=NEVER, given=True),
        Column("metadata", JSON, read=NEVER, unread="NO_METADATA"),
        Column("exhaustion", code("EXHAUSTIONS[{}]"), read=TERM, plain=Exhaustion.DRAIN),
        Column("grace_ms", read=TERM, plain=0),
        Column("overdraft", read=TERM, plain=0),
    ),
    writes=(
        TableWrite(  # of leases that one grant has paid for, as nearly all are
            "renewed_leases",
            "update",
            (KEY, OFTEN),
            extra=(Column("grant_id", attribute="", given=True),),
            values={"paid": "ARRAY[x.grant_id, x.settled]"},
        ),
        TableWrite("renewed_shared_leases", "update", (KEY, OFTEN)),
        TableWrite("changed_leases", "update", (KEY, OFTEN, RARELY)),
        TableWrite("new_leases", "insert"),
    ),
    kind=4,
)
TOPUP = Table(
    "topups",
    "topup",
    TopUpRow,
    (
        ORG_ID,
        Column("topup_id", written=KEY),
        Column("status", code("TOPUP_STATUSES[{}]"), OFTEN),
        Column("grant_id", written=OFTEN),
        *columns("account_id amount"),
        Column("payment_reference", TEXT),
        Column("expires_at"),
        Column("priority", INTEGER),
        Column("created_at"),
        Column("metadata", JSON),
    ),
    writes=(
        TableWrite("changed_topups", "update", (KEY, OFTEN)),
        TableWrite("new_topups", "insert"),
    ),
    kind=5,
)
ENTRY = Table(
    "entries",
    "entry",
    Entry,
    (
        ORG_ID,
        Column("recorded_at", attribute="", read=NEVER, given=True),
        Column("entry_id"),
        Column("effective_at", read=NEVER, unread="0"),
        Column("type", code("EntryType({})")),
        *columns("account_id amount"),
        Column("reserve", read=NEVER, unread="0"),
        Column("grant_id"),
        Column("other_id", read=NEVER, unread="0"),
        Column("other_grant_id"),
        Column("reservation_id", read=NEVER, unread="0"),
        Column("seq", read=NEVER, unread="0"),
    ),
    writes=(
        TableWrite("new_entries", "insert"),
        TableWrite(  # of heartbeats: effective when recorded, nobody else in it
            "new_settlements",
            "insert",
            values={
                "effective_at": "x.recorded_at",
                "type": "6",
                "other_id": "0",
                "other_grant_id": "0",
            },
        ),
    ),
    kind=15,
    is_listed=False,
)
QUOTA = Table(
    "quotas",
    "quota",
    Quota,
    (
        ORG_ID,
        Column("quota_id", written=KEY),
        Column("amount", written=OFTEN, attribute="limit"),
        Column("ended_at", written=OFTEN, read=NEVER, unread="0"),
        Column("set_by", SET_BY, OFTEN),
        Column("account_id"),
        Column("dimension", code("DIMENSIONS[{}]")),
        Column("gpu_type", TEXT),
        Column("calendar", CALENDAR),
        Column("zone", TEXT),
        Column("rolling_hours", INTEGER),
        *columns("created_at seeded first_entry_id"),
    ),
    writes=(
        TableWrite("changed_quotas", "update", (KEY, OFTEN)),
        TableWrite("new_quotas", "insert"),
    ),
    kind=8,
    beside=(  # what it counts, as the fields of Counter
        *columns("count leaving used held base starts_at ends_at"),
    ),
)
SLOTS = Table(  # what a quota on what runs at once counts
    "slots",
    "slots",
    Counter,
    (
        ORG_ID,
        Column("quota_id", written=KEY),
        *columns("count leaving", written=OFTEN),
    ),
    writes=(
        TableWrite("changed_slots", "update", (KEY, OFTEN)),
        TableWrite("new_slots", "insert"),
    ),
    is_listed=False,
)
METER = Table(
    "meters",
    "meter",
    None,
    (
        ORG_ID,
        Column("account_id", written=KEY),
        *columns("level level_at fraction", written=OFTEN),
        Column("windows", NUMBERS, OFTEN),
    ),
    writes=(
        TableWrite("changed_meters", "update", (KEY, OFTEN)),
        TableWrite("kept_meters", "upsert"),  # where limits came or went
    ),
    is_listed=False,
)
TALLY = Table(
    "tallies",
    "tally",
    Tally,
    (
        ORG_ID,
        Column("quota_id", written=KEY),
        Column("starts_at", written=KEY),
        Column("ends_at"),
        Column("used", written=OFTEN),
    ),
    writes=(TableWrite("kept_tallies", "upsert"),),
    kind=9,
)
BUCKET = Table(
    "token_buckets",
    "bucket",
    TokenBucket,
    (
        ORG_ID,
        Column("bucket_id", written=KEY),
        *columns("capacity refill_per_hour", written=RARELY),
        *columns("level level_at fraction", written=OFTEN),
        Column("ended_at", written=RARELY),
        Column("set_by", SET_BY, RARELY),
        Column("account_id"),
        Column("kind", code("TOKENS[{}]"), read=NEVER, unread="Tokens.CREDITS"),
    ),
    writes=(
        TableWrite("changed_buckets", "update", (KEY, OFTEN, RARELY)),
        TableWrite("new_buckets", "insert"),
    ),
    kind=11,
)
BOOST = Table(
    "boosts",
    "boost",
    Boost,
    (
        ORG_ID,
        Column("boost_id", written=KEY),
        *columns("starts_at ends_at", written=OFTEN),
        *columns("account_id target_id amount refill_per_hour"),
        Column("note", TEXT),
        Column("created_at"),
        Column("set_by", SET_BY),
    ),
    writes=(
        TableWrite("changed_boosts", "update", (KEY, OFTEN)),
        TableWrite("new_boosts", "insert"),
    ),
    kind=12,
)
BUDGET = Table(
    "budgets",
    "budget",
    Budget,
    (
        ORG_ID,
        Column("budget_id", written=KEY),
        *columns("allowance next_at", written=OFTEN),
        Column("calendar", CALENDAR, OFTEN),
        Column("zone", TEXT, OFTEN),
        Column("ends_at", written=OFTEN),
        Column("rollover", ROLLOVER, OFTEN),
        *columns("rollover_cap rollover_us", written=OFTEN),
        Column("priority", INTEGER, OFTEN),
        Column("warn_percent", PERCENTS, OFTEN),
        Column("account_id"),
        Column("name", TEXT),
        Column("created_at"),
    ),
    writes=(TableWrite("kept_budgets", "upsert"),),
    kind=13,
)
PERIOD = Table(
    "budget_periods",
    "period",
    BudgetPeriod,
    (
        ORG_ID,
        Column("budget_id", written=KEY),
        Column("starts_at", written=KEY),
        *columns("rolled rolled_grant_id", written=OFTEN),
        Column("warned_percent", SMALL, OFTEN),
        *columns("ends_at allowance grant_id"),
        Column("rollover", ROLLOVER),
        *columns("rollover_cap rollover_us"),
        Column("calendar", CALENDAR),
        Column("zone", TEXT),
    ),
    writes=(TableWrite("kept_periods", "upsert"),),
    kind=14,
)
ANSWER = Table(
    "idempotency",
    "answer",
    None,
    (
        ORG_ID,
        Column("key", TEXT),
        *columns("request_hash outcome", BYTES),
        Column("created_at", read=NEVER),
    ),
    writes=(TableWrite("new_answers", "insert"),),
    kind=7,
)
DECISION = Table(
    "decisions",
    "decision",
    None,
    (
        ORG_ID,
        Column("decided_at"),
        *columns("command decision reason", TEXT),
        Column("reservation_id"),
        Column("actor", TEXT),
        Column("detail", JSON_TEXT),
    ),
    writes=(TableWrite("new_decisions", "insert"),),
)
ACT = Table(
    "audit_log",
    "act",
    None,
    (
        ORG_ID,
        Column("recorded_at"),
        *columns("actor action resource", TEXT),
        *columns("old new", JSON_TEXT),
        Column("request_id", TEXT),
    ),
    writes=(TableWrite("new_acts", "insert"),),
)
EVENT = Table(
    "outbox",
    "event",
    None,
    (
        ORG_ID,
        Column("recorded_at"),
        Column("type", TEXT),
        Column("subject_id"),
        Column("payload", JSON_TEXT),
    ),
    writes=(TableWrite("new_events", "insert"),),
)

# What open_book returns that is no row of one table.
OPENED_ORG = Table(
    "",
    "opened_org",
    None,
    (
        *columns("now next_id next_entry_id clock version"),
        *columns("gated budgeted", FLAG),
        *columns("read_at prices_version"),
        Column("prices_until", decode="end_of({})"),
        Column("offset_us"),
        Column("path", TEXT),
    ),
    kind=0,
)
SUSPENDED = Table(
    "",
    "suspended",
    None,
    (Column("status"), Column("window_max_ms"), Column("path", TEXT)),
    kind=1,
)
PRICE = Table(
    "",
    "price",
    Price,
    (
        *columns("price_id credits_per_gpu_hour effective_from"),
        Column("effective_to", decode="end_of({})"),
        Column("is_end", FLAG),
        *columns("gpu_type region account", TEXT),
    ),
    kind=6,
)
JOB = Table(
    "",
    "job",
    None,
    (
        *columns("account_id live leaving settled"),
        *columns("job_id gpu_type", TEXT),
        Column("leases", NUMBERS, decode="{}"),
    ),
    kind=10,
)
NODE = Table(
    "",
    "node",
    None,
    (
        *columns("account_id reservation_id expires_at"),
        *columns("job_id node", TEXT),
    ),
    kind=16,
)

TABLES = (
    ORG,
    ACCOUNT,
    GRANT,
    LEASE,
    TOPUP,
    ENTRY,
    QUOTA,
    SLOTS,
    METER,
    TALLY,
    BUCKET,
    BOOST,
    BUDGET,
    PERIOD,
    ANSWER,
    DECISION,
    ACT,
    EVENT,
    OPENED_ORG,
    SUSPENDED,
    PRICE,
    JOB,
    NODE,
)
NUMBERED = (ACCOUNT, GRANT, LEASE, TOPUP, QUOTA, BUCKET, BOOST, BUDGET)  # by one counter of an org
