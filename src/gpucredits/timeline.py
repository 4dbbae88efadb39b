"""The engine of the time-based library under its public name, ``gpucredits.timeline``."""

from gpucredits.library.timeline import (
    Consumption,
    Effort,
    Grant,
    Order,
    Shortage,
    Shortfall,
    Timeline,
    Window,
    active_credits,
    audit_trail,
    balances,
    soonest_expiry,
)

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
