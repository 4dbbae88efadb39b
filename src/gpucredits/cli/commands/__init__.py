"""Commands that call a server, one module for each noun."""
