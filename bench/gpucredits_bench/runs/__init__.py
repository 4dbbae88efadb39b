"""The runs: which contestant does what in which order, the figures, and how they are shown."""
