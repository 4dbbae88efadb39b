"""Keys, the audit log and lease tokens on the wire."""
