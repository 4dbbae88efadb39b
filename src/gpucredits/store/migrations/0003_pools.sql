-- Holds the number until its tables are merged.
SELECT;
