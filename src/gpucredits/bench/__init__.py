"""Measurements that are part of the product: what one machine carries, as ratios within one run.

``heartbeats`` is the run. It measures the textbook (``textbook``), the real server through HTTP
(``server``, ``seeding``, ``load``, ``probe``) and the raw limit (``rawcopy``), all on one and the
same PostgreSQL, then verifies the books.
"""
