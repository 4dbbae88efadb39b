"""Limits at rest, and request buckets in Redis."""
