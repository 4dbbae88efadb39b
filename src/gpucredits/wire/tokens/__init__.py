"""Lease tokens on the wire: their shapes, and how one is signed and checked."""
