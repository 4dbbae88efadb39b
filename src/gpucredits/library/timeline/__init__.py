"""Time-based credits: the engine, and functions over whole histories.

Owns everything that happens to credits in time. Pure: no clock, no I/O, no randomness.
"""

from gpucredits.library.timeline.batch import active_credits, audit_trail, balances
from gpucredits.library.timeline.engine import Consumption, Shortfall, Timeline, Window
from gpucredits.library.timeline.event import Grant, Order, soonest_expiry
from gpucredits.library.timeline.pool import Shortage
from gpucredits.library.timeline.revision import Effort

__all__ = [
    "Consumption",
    "Effort",
    "Grant",
    "Order",
    "Shortage",
    "Shortfall",
    "Timeline",
    "Window",
    "active_credits",
    "audit_trail",
    "balances",
    "soonest_expiry",
]
