"""The request of each response."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from aiokwire.errors import ProtocolViolation
from aiokwire.net.in_flight import InFlight, InFlightQueue


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """Futures need a loop to exist; it never runs."""
    made = asyncio.new_event_loop()
    yield made
    made.close()


def entry(queue: InFlightQueue, loop: asyncio.AbstractEventLoop, deadline: float = 30.0) -> InFlight:
    made = InFlight(queue.next_id(), "Metadata", 1, None, loop.create_future(), 0.0, deadline)
    queue.add(made)
    return made


def test_responses_are_matched_in_the_order_of_the_requests(loop: asyncio.AbstractEventLoop) -> None:
    queue = InFlightQueue()
    first, second = entry(queue, loop), entry(queue, loop)
    assert queue.take(first.correlation_id) is first
    assert queue.take(second.correlation_id) is second
    assert len(queue) == 0


def test_a_response_out_of_order_is_a_violation_that_names_both(loop: asyncio.AbstractEventLoop) -> None:
    queue = InFlightQueue()
    entry(queue, loop)
    second = entry(queue, loop)
    with pytest.raises(ProtocolViolation, match=r"correlation id 1, expected 0 \(Metadata v1\), the first of 2"):
        queue.take(second.correlation_id)


def test_a_response_without_a_request_is_a_violation() -> None:
    with pytest.raises(ProtocolViolation, match="no request is waiting for one"):
        InFlightQueue().take(7)


def test_correlation_ids_wrap_before_they_turn_negative() -> None:
    queue = InFlightQueue(first_id=2**31 - 1)
    assert [queue.next_id(), queue.next_id()] == [2**31 - 1, 0]


def test_the_earliest_deadline_need_not_be_the_oldest_request(loop: asyncio.AbstractEventLoop) -> None:
    queue = InFlightQueue()
    assert queue.earliest_deadline() is None
    slow, quick = entry(queue, loop, 30.0), entry(queue, loop, 2.0)
    assert queue.earliest_deadline() == 2.0
    assert queue.expired(1.9) == []
    assert queue.expired(2.0) == [quick]
    assert queue.drain() == [slow, quick]
    assert queue.drain() == []
