"""The metering pipeline: measured use comes in, events go out, through one port.

::

    POST /v1/usage ─▶ usage messages ─▶ Bus ─▶ UsageIntake ─▶ usage_events, measured  (PostgreSQL)
                      one org each      │      effect, progress and dead letters: one transaction
    outbox ─▶ EventRelease ─▶ EventOutlet ─┘   in order per org, at least once

Owns: the port (``bus``), its three implementations, what messages say, and exact progress.
Must not: move money. Without ``--bus``, use is written straight to PostgreSQL.
"""
