"""What somebody may try after a refusal: the names there are, or where a key came from.

Owns: the sentence below a refusal. It asks the server once or twice more, with the same key.
Must not: change anything, or fail: a server that does not answer gives no advice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from gpucredits.cli.terminal.near import near, offer
from gpucredits.client import CallError, Client, Refused

LISTED_MAX: Final = 1_000  # accounts and prices that are looked through
NAMED_MAX: Final = 8


def advice(refused: Refused, client: Callable[[], Client]) -> str:
    """The advice on a refusal; empty where there is none."""
    ask = _ADVICE.get(refused.problem.reason)
    if ask is None:
        return ""
    try:
        with client() as connected:
            return ask(refused, connected)
    except CallError:
        return ""


def _near_account(refused: Refused, client: Client) -> str:
    path = refused.problem.account or ""
    org = path.partition("/")[0]
    try:
        known = client.account_page(under=org, limit=LISTED_MAX).accounts
    except Refused:  # the org is what is unknown
        known = client.account_page(limit=LISTED_MAX).accounts
    offered = offer(near(path, [row.path for row in known]))
    return offered.strip() or "The accounts that your key sees: gpucredits account list."


def _priced_types(refused: Refused, client: Client) -> str:
    del refused
    rows = client.price_page(limit=LISTED_MAX).prices
    listed = [row for row in rows if row.state == "in_force" and not row.account]
    priced = sorted({f"{row.gpu_type}/{row.region}" for row in listed})
    if not priced:
        return "No price is in force: gpucredits price set GPU_TYPE CREDITS_PER_GPU_HOUR sets one."
    return f"Prices are in force for {_named(priced)}."


def _known_pools(refused: Refused, client: Client) -> str:
    del refused
    pools = [f"{row.gpu_type}/{row.region}" for row in client.pools().pools]
    if not pools:
        return "There are no pools: gpucredits pool set POOL --capacity NUMBER makes one."
    return f"The pools are {_named(pools)}."


def _named(names: Sequence[str]) -> str:
    more = len(names) - NAMED_MAX
    return ", ".join(names[:NAMED_MAX]) + (f" and {more} more" if more > 0 else "")


_ADVICE: Final[dict[str, Callable[[Refused, Client], str]]] = {
    "account_unknown": _near_account,
    "price_unknown": _priced_types,
    "pool_unknown": _known_pools,
}
