"""How commands read words and print answers: grammar, values, tables, failures."""
