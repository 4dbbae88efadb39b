"""What the system does, as calls: the one door to writes, and the reads beside it."""
