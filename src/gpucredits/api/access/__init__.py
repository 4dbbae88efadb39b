"""Handlers of API keys and of the audit log."""
