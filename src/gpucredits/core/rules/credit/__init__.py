"""Rules of credits: accounts, funding, grants, top-ups, transfers, corrections."""
