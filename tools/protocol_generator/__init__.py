"""Kafka's message definitions to Python modules. Run by `make generate`; not part of the wheel."""
