"""A broker for each test, with a topic of two partitions."""

from __future__ import annotations

from typing import Any

import pytest

from aiokwire.testing.plugin import kafka_broker

__all__ = ["kafka_broker"]


@pytest.fixture
def kafka_broker_options() -> dict[str, Any]:
    return {"topics": {"orders": 2, "invoices": 1, "orders.dlq": 1}, "auto_create_topics": False}
