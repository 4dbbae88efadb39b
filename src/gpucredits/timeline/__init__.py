"""Time-based credits: the engine, and functions over whole histories.

Owns everything that happens to credits in time. Pure: no clock, no I/O, no randomness.
"""

from gpucredits.timeline.batch import active_credits, audit_trail, balances
from gpucredits.timeline.engine import Consumption, Shortfall, Timeline, Window
from gpucredits.timeline.event import Grant, Order, soonest_expiry
from gpucredits.timeline.pool import Shortage
from gpucredits.timeline.revision import Effort

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
