"""The plugin's fixtures, whether this checkout is installed with its entry point or not."""

from __future__ import annotations

from aiokwire.testing.plugin import kafka_broker, kafka_broker_options

__all__ = ["kafka_broker", "kafka_broker_options"]
