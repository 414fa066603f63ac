"""The pytest plugin: fixtures for tests that need a Kafka. Loaded by pytest itself where aiokwire is installed.

Nothing of aiokwire is imported until a test asks for a fixture. With pytest-asyncio the broker runs on the test's own
loop; without it, anyio's plugin takes the fixture in tests that it runs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pytest

if TYPE_CHECKING:
    from aiokwire.broker import Broker

F = TypeVar("F", bound=Callable[..., Any])
JOURNAL = 1000  # requests that the fixture's broker keeps


def _async_fixture(function: F) -> F:
    """A fixture of whoever runs async tests here."""
    made: Any
    try:
        import pytest_asyncio
    except ImportError:
        made = pytest.fixture(function)
    else:
        made = pytest_asyncio.fixture(function)
    return cast("F", made)


@pytest.fixture
def kafka_broker_options() -> dict[str, Any]:
    """Options of `kafka_broker`, those of `aiokwire.broker.Broker`; define it anew to change them."""
    return {}


@_async_fixture
async def kafka_broker(kafka_broker_options: dict[str, Any]) -> AsyncIterator[Broker]:
    """A Kafka of its own for each test, in memory, at free ports of loopback; its journal is on."""
    from aiokwire.broker import Broker

    async with Broker(**{"journal": JOURNAL, **kafka_broker_options}) as broker:
        yield broker
