"""Prices, spending, measured use, statements, budget requests and unusual spending at rest."""
