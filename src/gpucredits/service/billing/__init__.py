"""Prices, statements, budget requests, measured use and unusual spending."""
