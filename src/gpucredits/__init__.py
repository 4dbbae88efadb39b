"""gpucredits: metering, budgeting and admission for GPU fleets."""

from gpucredits.version import __version__

__all__ = ["__version__"]
