"""The command line: tables for people, JSON for scripts."""
