"""Commands about outages: exposure, and planned stops."""
