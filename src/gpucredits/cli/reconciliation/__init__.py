"""Commands of the reconciler: ``reconcile`` and ``loss``."""
