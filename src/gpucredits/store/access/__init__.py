"""Keys, administrative acts and the audit log at rest."""
