"""The time-based credit library: replay of grants and charges by event time. It stands alone."""
