"""HTTP operations of the metering pipeline: dead letters, events and their readers."""
