"""The plugin's fixtures, with or without the entry point installed; options that retry quickly."""

from __future__ import annotations

from typing import Any

import pytest

from aiokwire.testing.plugin import kafka_broker, kafka_broker_options

__all__ = ["kafka_broker", "kafka_broker_options", "quick"]


@pytest.fixture
def quick() -> dict[str, Any]:
    """Options of a client that retries at once."""
    return {
        "retry_backoff_ms": 2,
        "retry_backoff_max_ms": 10,
        "metadata_min_interval_ms": 1,
        "reconnect_backoff_ms": 2,
        "reconnect_backoff_max_ms": 20,
    }
