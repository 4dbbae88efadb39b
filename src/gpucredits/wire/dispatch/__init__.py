"""Pools and their queue on the wire."""
