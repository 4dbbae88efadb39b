"""Commands about keys and the audit log."""
