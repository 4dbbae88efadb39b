"""How much a run of fault scenarios does, and the number that all of its chance comes from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Teller = Callable[..., None]  # (scenario, figures, what must have happened = how often)


@dataclass(frozen=True, slots=True)
class Extent:
    """How often to do it, and the seed."""

    cycles: int
    seed: int
