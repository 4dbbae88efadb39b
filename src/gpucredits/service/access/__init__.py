"""Who may do what: keys, roles, scopes, and reading the audit log."""
