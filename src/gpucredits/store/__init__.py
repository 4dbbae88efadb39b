"""Everything that speaks SQL or looks after the database; the rules of money live elsewhere."""
