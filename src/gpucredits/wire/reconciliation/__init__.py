"""The reconciler on the wire: comparisons, alarms, unmatched use, lost work."""
