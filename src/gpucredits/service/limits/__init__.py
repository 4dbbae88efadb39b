"""Request limits, and how limits stand."""
