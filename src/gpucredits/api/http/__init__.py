"""From bytes to a call and back: connections, routing, errors, limits on what is sent."""
