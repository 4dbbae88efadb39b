"""Handlers of the reconciler: comparisons, alarms, unmatched use, lost work."""
