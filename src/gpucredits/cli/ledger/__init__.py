"""Commands about accounts, credits and leases."""
