"""Measured use beside the bill: passes of the reconciler, and what people do about drift."""
