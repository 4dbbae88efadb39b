"""Commands of a node: running jobs under leases."""
