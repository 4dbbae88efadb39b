"""Commands that run or look after a server: serve, backup, restore, verify, demo, simulate."""
