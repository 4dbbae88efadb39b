"""Gates and their limits on the wire."""
