"""Handlers of prices, use, statements, budget requests and unusual spending."""
