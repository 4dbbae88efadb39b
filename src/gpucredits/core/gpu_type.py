"""Names of GPU types and regions: how they are written, and how a pool is named by both.

Owns: one spelling for each name. Names are trimmed and lower-cased wherever they come in, so that
``H100`` and ``h100 `` are the same type in a price, a quota, a pool and a lease.
Must not: know which types exist.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from gpucredits.core import bounds

REGION_DEFAULT: Final = "default"
# Words that follow a pool in addresses, so no region has their name.
POOL_WORDS: Final = frozenset({"weights", "shares", "snapshot"})
_STEPS: Final = frozenset({".", ".."})  # clients take these out of an address


@lru_cache(maxsize=1_000)
def check_gpu_type(text: str) -> str:
    """The one spelling of a GPU type; ValueError says what is wrong.

    A type may have one slash, as in ``nvidia.com/h100``.
    """
    name = _checked(text)
    parts = name.split("/")
    if len(parts) > 2 or any(not part.strip() or part in _STEPS for part in parts):
        raise ValueError("must be a GPU type such as h100 or nvidia.com/h100, with at most 1 slash")
    return name


@lru_cache(maxsize=1_000)
def check_region(text: str) -> str:
    """The one spelling of a region; ValueError says what is wrong."""
    name = _checked(text)
    if "/" in name or name in _STEPS:
        raise ValueError("must be a region such as default or eu-west, without a slash")
    if name in POOL_WORDS:
        words = ", ".join(sorted(POOL_WORDS))
        raise ValueError(f"must not be a reserved word ({words})")
    return name


def parse_pool(text: str, region: str | None = None) -> tuple[str, str]:
    """(GPU type, region) of a pool from ``h100``, ``h100/eu`` or ``nvidia.com/h100/eu``.

    Of two parts, a first one with a dot in it belongs to the type: ``nvidia.com/h100`` is a type
    in the default region. With a ``region``, all of the text is the type. ValueError says what is
    wrong.
    """
    if region is not None:
        return check_gpu_type(text), check_region(region)
    parts = text.strip().split("/")
    if len(parts) == 1 or (len(parts) == 2 and "." in parts[0]):
        return check_gpu_type(text), REGION_DEFAULT
    return check_gpu_type("/".join(parts[:-1])), check_region(parts[-1])


def _checked(text: str) -> str:
    name = text.strip().lower()
    if not 1 <= len(name) <= bounds.NAME_LENGTH_MAX:
        raise ValueError(f"must be text of 1 to {bounds.NAME_LENGTH_MAX} printable characters")
    return name
