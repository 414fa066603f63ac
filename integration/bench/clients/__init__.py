"""One module per client, one function per task; a client lacks the functions that it cannot do."""
