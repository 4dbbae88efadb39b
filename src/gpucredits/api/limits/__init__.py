"""Handlers of quotas, budgets, boosts and rate limits."""
