"""The metering pipeline at rest: progress on the bus, dead letters, and the order of events."""
