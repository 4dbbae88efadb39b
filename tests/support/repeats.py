"""Whether a repeated call was told what the first one was."""

from __future__ import annotations

import json
from typing import Any

from gpucredits.client import Call


def is_same_answer(call: Call[Any], first: bytes, again: bytes) -> bool:
    """Whether a retry was told the same; where a seq is the key, but for what time changes.

    The secret of a new key is shown once: a retry has none, and a note that says so.
    """
    if call.path == "/v1/keys":
        made, told = json.loads(first), json.loads(again)
        is_told = made.pop("secret") and not told.pop("secret")
        return (
            bool(is_told and told.pop("note")) and made.items() - {("note", None)} == told.items()
        )
    if call.path == "/v1/reconciler:run":  # what was compared is not due again
        return bool(json.loads(first)["compared"] and not json.loads(again)["compared"])
    if call.is_keyed and call.path != "/v1/tokens:redeem":  # which says how much is left now
        return first == again
    return lasting(first) == lasting(again)


def lasting(body: bytes) -> list[dict[str, Any]]:
    """An answer without its note that it is a repeat, and how much of the lease is left now."""
    answer = json.loads(body)
    results: list[dict[str, Any]] = answer.get("results", [answer])
    changing = ("duplicate", "status", "expires_in_ms")
    return [{k: v for k, v in each.items() if k not in changing} for each in results]
