"""One module per client; each runs in an environment of its own."""
