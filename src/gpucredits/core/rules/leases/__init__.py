"""Rules of leases: start, heartbeat, renewal, late use, end."""
