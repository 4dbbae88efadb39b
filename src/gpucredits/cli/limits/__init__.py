"""Commands about limits and budgets."""
