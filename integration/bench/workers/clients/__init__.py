"""One module per client; each runs in an environment of its own and imports nothing else of the project's tests."""
