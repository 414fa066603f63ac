"""A failing disk: no response confirms a change that was not stored."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from aiokwire.broker import Broker
from aiokwire.broker.log import MemoryStorage
from aiokwire.error_codes import ErrorCode
from tests.broker.grouped import ConsumerProtocolMember, RawMember, close, rebalance, settle, started
from tests.broker.raw import RawClient


class Full(MemoryStorage):
    """A disk that may be full."""

    full = False

    def room(self, more: int) -> int:
        return -more if self.full else super().room(more)


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[Broker]:
    """A broker with such a disk."""
    options: dict[str, Any] = {"group_consumer_min_session_timeout_ms": 1, "group_consumer_session_timeout_ms": 300}
    async with Broker(storage=Full(), topics={"t": 2}, rng=random.Random(7), **options) as running:
        yield running


def disk(broker: Broker) -> Full:
    assert isinstance(broker.state.storage, Full)
    return broker.state.storage


async def test_an_assignment_that_cannot_be_logged_has_no_owner(broker: Broker) -> None:
    one, other = await started(broker, 2)
    for member in (one, other):
        member.send_join(protocols=(("range", b"changed"),))
    for member in (one, other):
        assert await member.take_join() is ErrorCode.NONE
    other.send_sync()
    disk(broker).full = True
    one.send_sync({one.member_id: b"1", other.member_id: b"2"})
    for member in (one, other):
        assert (await member.take_sync())[0] is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert await member.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    disk(broker).full = False
    await rebalance(one, other)
    assert broker.faults.group("g").state == "Stable"
    await close(one, other)


async def test_the_members_of_a_deleted_group_stay_removed(broker: Broker) -> None:
    (one,) = await started(broker, 1)
    disk(broker).full = True
    assert await one.commit(3) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert await one.leave() is ErrorCode.NONE
    assert broker.faults.group("g").state == "Empty"
    disk(broker).full = False
    await close(one)


async def test_a_heartbeat_changes_everything_or_nothing(broker: Broker) -> None:
    first, second = [ConsumerProtocolMember(broker, await RawClient.connect(broker), name) for name in "ab"]
    assert await first.beat(join=True) is ErrorCode.NONE
    before = broker.faults.group("g")
    disk(broker).full = True
    assert await second.beat(join=True) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert await first.leave() is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert await first.beat() is ErrorCode.NONE, "nothing to log"
    assert broker.faults.group("g") == before
    disk(broker).full = False
    assert await second.beat(join=True) is ErrorCode.NONE
    await settle(first, second)
    assert (len(first.owned["t"]), len(second.owned["t"])) == (1, 1)
    await close(first, second)


async def test_a_session_that_ends_while_the_disk_is_full_ends_later(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    silent = ConsumerProtocolMember(broker, await RawClient.connect(broker), "silent")
    assert await silent.beat(join=True) is ErrorCode.NONE
    watch = await RawMember.connect(broker, "watch")
    disk(broker).full = True
    with caplog.at_level("ERROR"):
        while "retrying" not in caplog.text:
            await watch.beat(generation=1)
    assert list(broker.faults.group("g").members) == ["silent"]
    disk(broker).full = False
    while broker.faults.group("g").members:
        await watch.beat(generation=1)
    await close(silent, watch)


async def test_a_full_disk_is_logged_once_for_many_refused_requests(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    (one,) = await started(broker, 1)
    disk(broker).full = True
    for _ in range(5):
        assert await one.commit(3) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert len([record for record in caplog.records if record.levelname == "ERROR"]) == 1
    disk(broker).full = False
    await close(one)
