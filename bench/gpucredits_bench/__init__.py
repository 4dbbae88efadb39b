"""Measurements: what one machine carries, as ratios within one run.

A package of its own, so that no server carries it. ``commands`` is ``gpucredits bench``; ``runs``
order what ``contestants`` do under ``traffic``. All contestants of a run share one PostgreSQL.
"""
