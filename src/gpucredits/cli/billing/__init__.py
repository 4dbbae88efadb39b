"""Commands about prices, use, statements and requests."""
