"""How long a lease may last without a report.

A lease of a silent node holds its GPUs and credits until it lapses: its whole time, the window and
the windows of escrow, is bounded by the server, by its pool, and by every account from its own up
to the org. The least of these bounds counts.

Owns: the bound that holds, the refusal of longer leases, and the shrinking of those that there are.
"""

from __future__ import annotations

from dataclasses import replace

from gpucredits.core import bounds
from gpucredits.core.account import lineage
from gpucredits.core.book import Book
from gpucredits.core.command import Reserve
from gpucredits.core.reasons import Reason, Refused
from gpucredits.core.reservation import Reservation


def lease_bound(book: Book, account: str, gpu_type: str, region: str) -> tuple[int, str]:
    """The longest that a lease may last, in ms, and where that is set."""
    windows = book.windows
    bound, where = windows.server_ms, "the server (serve --window-max-seconds)"
    of_pool = windows.pools.get((gpu_type, region), bound)
    if of_pool < bound:
        bound, where = of_pool, f"the pool {gpu_type}/{region}"
    if book.account_windows:
        for path in lineage(account):
            of_account = book.account_windows.get(path, bound)
            if of_account < bound:
                bound, where = of_account, f"the account {path}"
    return bound, where


def longest_window(bound_ms: int, escrow_windows: int) -> int:
    """The longest window of a lease with so many windows of escrow, in whole seconds as ms."""
    return max(bound_ms // (1 + escrow_windows) // 1_000 * 1_000, bounds.WINDOW_MS_MIN)


def with_window(book: Book, command: Reserve) -> Reserve | Refused:
    """The command with the window that its lease will have; refuses one that is too long."""
    bound, where = lease_bound(book, command.account, command.gpu_type, command.region)
    longest = longest_window(bound, command.escrow_windows)
    if not command.window_ms:
        return replace(command, window_ms=min(bounds.WINDOW_MS_DEFAULT, longest))
    asked = command.window_ms * (1 + command.escrow_windows)
    if asked <= bound:
        return command
    return Refused(
        Reason.WINDOW_TOO_LONG,
        f"This lease could last {asked // 1_000} seconds without a report (the window and its "
        f"escrow windows); {where} allows at most {bound // 1_000}. Ask for a window of at most "
        f"{longest // 1_000} seconds, or for none.",
        {
            "requested_seconds": asked // 1_000,
            "window_max_seconds": bound // 1_000,
            "set_by": where,
        },
    )


def outlasts(book: Book, lease: Reservation) -> bool:
    """Whether a lease is longer than the bounds that hold now allow."""
    return lease.lease_ms > lease_bound(book, lease.account, lease.gpu_type, lease.region)[0]


def shrink(book: Book, lease: Reservation) -> None:
    """Make the window of a lease that is renewed as short as the bounds that hold now."""
    bound, _ = lease_bound(book, lease.account, lease.gpu_type, lease.region)
    if lease.lease_ms > bound:
        book.touch(lease)
        book.reshaped.add(lease.reservation_id)
        lease.window_ms = longest_window(bound, lease.escrow_windows)
