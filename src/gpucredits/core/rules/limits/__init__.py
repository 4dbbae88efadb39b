"""Rules of limits: quotas, budgets, rate limits, boosts, and the gates at admission."""
