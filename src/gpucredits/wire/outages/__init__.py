"""Shapes of what concerns outages: exposure, and planned stops."""
