"""Units of time, and every bound and default of the rules, with its unit in its name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

SECOND_US: Final = 1_000_000
MINUTE_US: Final = 60 * SECOND_US
HOUR_US: Final = 60 * MINUTE_US
DAY_US: Final = 24 * HOUR_US
INSTANT_US_MAX: Final = 253_402_300_799_999_999  # the last of the year 9999
NEVER_US: Final = 2**62  # later than any instant that can be written; "does not expire"

WINDOW_MS_DEFAULT: Final = 120_000
WINDOW_MS_MIN: Final = 1_000
WINDOW_MS_MAX: Final = 24 * 3_600_000  # what a server's bound on leases may be set to
LEASE_MAX_MS_DEFAULT: Final = 600_000  # how long a lease may last without a report
ESCROW_WINDOWS_MAX: Final = 10
AWAY_US_MIN: Final = 10 * SECOND_US  # servers that gave no sign of life for longer were away
OUTAGE_GRACE_MS_DEFAULT: Final = 120_000  # to report after an outage: a window at most
OUTAGE_GRACE_MS_MAX: Final = 3_600_000
OUTAGES_KEPT: Final = 100  # the newest ones count, for as long as late use does
MAINTENANCE_MS_MIN: Final = 60_000
MAINTENANCE_MS_MAX: Final = 24 * 3_600_000
LATE_USE_US_MAX: Final = 7 * DAY_US  # use of a lapsed lease is charged if reported by then
GPU_COUNT_MAX: Final = 100_000
MILLI_GPUS_MAX: Final = 1_000 * GPU_COUNT_MAX
PRICE_MAX: Final = 10**12  # a million credits per GPU-hour
CLOCK_TOLERANCE_MS: Final = 2_000
CLOCK_JUMP_US: Final = 3 * SECOND_US  # a clock that is off by more decides nothing
USED_MS_MAX: Final = 10 * 366 * 24 * 3_600_000

GRANTS_LIVE_MAX: Final = 1_000  # unended grants of one account
PRIORITY_DEFAULT: Final = 100
PRIORITY_MAX: Final = 1_000

ROLLING_HOURS_MAX: Final = 31 * 24
QUOTAS_MAX: Final = 100  # of one account
BUDGETS_MAX: Final = 20  # of one account
BOOSTS_MAX: Final = 100  # of one limit that have not ended
WARNINGS_MAX: Final = 10  # of one budget
WARN_PERCENT_MAX: Final = 100
ROLLOVER_US_MAX: Final = 10 * 366 * DAY_US

PATH_SEGMENT_LENGTH_MAX: Final = 63
NAME_LENGTH_MAX: Final = 200  # job, node, region, GPU type, payment reference
METADATA_KEYS_MAX: Final = 20
METADATA_VALUE_LENGTH_MAX: Final = 500


@dataclass(slots=True)
class WindowBounds:
    """How long leases may last without a report: the server's bound in ms, and those of its pools.

    Pools are named by (GPU type, region). Whoever fills a book passes these bounds in: they are not
    rows of an org.
    """

    server_ms: int = WINDOW_MS_MAX
    pools: dict[tuple[str, str], int] = field(default_factory=dict)
