"""One module per client, one function per task that the client supports."""
