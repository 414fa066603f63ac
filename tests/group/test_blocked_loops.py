"""A handler that blocks the loop for longer than a session: the member stays, and reports the
blocking line."""

from __future__ import annotations

import time
from typing import Any

import anyio
import pytest

from aiokwire.consumer import ConsumerEvent, EventStream, LoopBlocked
from aiokwire.watchdog import BlockedLoop
from tests.consumer.groups import RecordingListener, assigned, fill, member, t, until
from tests.group.aside import broker_aside

SESSION_MS = 800
BROKER: dict[str, Any] = {
    "topics": {"t": 2},
    "group_min_session_timeout_ms": 100,
    "group_consumer_session_timeout_ms": SESSION_MS,
    "group_consumer_min_session_timeout_ms": SESSION_MS,
    "group_consumer_heartbeat_interval_ms": 50,
    "group_consumer_min_heartbeat_interval_ms": 50,
}


def handler() -> None:
    """Block the loop."""
    time.sleep(3 * SESSION_MS / 1000)


async def first_block(events: EventStream[ConsumerEvent]) -> BlockedLoop:
    with anyio.fail_after(5):
        async for event in events:
            if isinstance(event, LoopBlocked):
                return event.blocked
    raise AssertionError("no event")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_a_member_survives_a_blocked_loop_and_the_blocking_line_is_reported(
    protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    listener = RecordingListener()
    options = {"group_protocol": protocol, "session_timeout_ms": SESSION_MS, "heartbeat_interval_ms": 50}
    with broker_aside(**BROKER) as broker:
        async with member(broker, listener=listener, **options) as reader:
            await fill(broker, 2)
            events = reader.events()
            seen = [await reader.getone(timeout=5) for _ in range(5)]
            before = broker.faults.group("g")
            handler()
            seen += [await reader.getone(timeout=5) for _ in range(15)]
            assert len({(record.partition, record.offset) for record in seen}) == 20, "no record is repeated"
            after = broker.faults.group("g")
            assert (list(after.members), after.generation) == (list(before.members), before.generation)
            assert listener.events == [("assigned", t(0, 1))]
            blocked = await first_block(events)
            assert blocked.where is not None
            assert blocked.where.function == "handler"
            assert blocked.seconds > SESSION_MS / 1000
            health = reader.health()
            assert health.blocked == blocked
            await assigned(reader, 0, 1)
    assert "at " in next(record.getMessage() for record in caplog.records if record.name == "aiokwire.watchdog")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_the_warning_of_an_exceeded_poll_interval_names_the_blocking_line(
    protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    options = {"group_protocol": protocol, "session_timeout_ms": SESSION_MS, "heartbeat_interval_ms": 50}

    def warnings() -> list[str]:
        messages = [record.getMessage() for record in caplog.records if record.name.startswith("aiokwire.group")]
        return [message for message in messages if "max_poll_interval_ms=3000" in message]

    with broker_aside(**BROKER) as broker:
        async with member(broker, max_poll_interval_ms=3000, **options) as reader:
            await fill(broker, 2)
            await reader.getone(timeout=5)
            handler()
            await until(lambda: bool(warnings()))
    assert "the event loop was blocked for" in warnings()[0]
    assert "in handler" in warnings()[0]
