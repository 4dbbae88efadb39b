"""The metering pipeline on the wire: messages, dead letters, events and their readers."""
