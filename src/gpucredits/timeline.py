"""The engine of the time-based library under its public name, ``gpucredits.timeline``."""

from gpucredits.library.timeline import *  # noqa: F403  # what that room offers, and nothing else
from gpucredits.library.timeline import __all__ as __all__  # noqa: PLC0414  # a re-export
