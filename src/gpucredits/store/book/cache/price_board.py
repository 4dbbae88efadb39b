"""Prices in force, kept from one admission to the next.

Owns: what was found for which question, and until when that holds by itself.
Must not: be believed. What was admitted by it is saved only if no price has been added since: a new
price draws a new version for the system org's row, and that is the board's version.
"""

from __future__ import annotations

from collections.abc import Collection

from gpucredits.core import bounds
from gpucredits.core.price import Price

PriceKey = tuple[int, str, str, str]  # org, GPU type, region, owner
KNOWN_MAX = 100_000


class PriceBoard:
    """Of each question that was asked, the price in force, or None where there is none."""

    def __init__(self) -> None:
        self.version: int | None = None
        self._until = bounds.NEVER_US  # when the first of the prices to come is in force
        self._known: dict[PriceKey, Price | None] = {}

    def learn(
        self, version: int, until: int, asked: Collection[PriceKey], found: dict[PriceKey, Price]
    ) -> None:
        """Keep what the database answered.

        What was said of an older version, or before a price came into force, is forgotten.
        """
        is_same = version == self.version and until == self._until
        if not is_same or len(self._known) > KNOWN_MAX:
            self._known.clear()
        self.version, self._until = version, until
        self._known.update((key, found.get(key)) for key in asked)

    def answers(self, asked: Collection[PriceKey], now: int) -> bool:
        """Whether all is known that is asked, and still holds."""
        return not asked or (now < self._until and all(key in self._known for key in asked))

    def price(self, key: PriceKey) -> Price | None:
        """The price in force; KeyError where nothing is known."""
        return self._known[key]
