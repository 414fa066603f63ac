"""The worker compared with other ways to call a handler per record: `python -m integration.bench.workers`."""
