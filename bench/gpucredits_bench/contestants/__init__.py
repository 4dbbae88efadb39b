"""Who is measured: the real server, the textbook, the raw limit, and ours without HTTP."""
