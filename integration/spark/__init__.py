"""Integration tests, kills and benchmarks of the Spark source, sink and pipelines."""
