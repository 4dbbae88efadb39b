"""Prices, use and what it costs, on the wire."""
