"""Measured use beside the bill at rest: comparisons, alarms, unmatched use, lost work."""
