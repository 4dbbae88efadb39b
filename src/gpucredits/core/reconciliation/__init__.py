"""Nouns of the reconciler: measured use beside the bill, and lost work."""
