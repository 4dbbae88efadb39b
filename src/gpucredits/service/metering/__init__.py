"""Use cases of the metering pipeline: dead letters, events and their readers."""
