"""The user's listener: its shape, its time, its faults."""

from __future__ import annotations

import anyio
import pytest

from aiokwire.consumer import RebalanceListener
from aiokwire.consumer.listener import call_listener, checked_listener
from aiokwire.errors import InvalidArgument
from aiokwire.types import TopicPartition

ONE = frozenset({TopicPartition("t", 0)})


async def test_lost_partitions_are_revoked_ones_unless_told_otherwise() -> None:
    told: list[frozenset[TopicPartition]] = []

    class Keeps(RebalanceListener):
        async def revoked(self, partitions: frozenset[TopicPartition]) -> None:
            told.append(partitions)

    assert await call_listener(Keeps().lost, ONE, 1.0) is None
    assert told == [ONE]
    assert await call_listener(Keeps().assigned, ONE, 1.0) is None


async def test_a_listener_that_raises_or_takes_too_long_is_named() -> None:
    class Bad(RebalanceListener):
        async def assigned(self, partitions: frozenset[TopicPartition]) -> None:
            raise LookupError("no table")

        async def revoked(self, partitions: frozenset[TopicPartition]) -> None:
            await anyio.sleep_forever()

    failed = await call_listener(Bad().assigned, ONE, 1.0)
    assert "Bad.assigned failed: LookupError: no table" in str(failed)
    assert failed is not None
    assert isinstance(failed.__cause__, LookupError)
    assert "Bad.revoked did not end within 0.0 s" in str(await call_listener(Bad().revoked, ONE, 0.01))


async def test_a_cancelled_rebalance_is_no_fault_of_the_listener() -> None:
    with anyio.CancelScope() as scope:
        scope.cancel()
        await call_listener(RebalanceListener().assigned, ONE, 1.0)
        await anyio.lowlevel.checkpoint()
        raise AssertionError("the cancellation was swallowed")
    assert scope.cancelled_caught


def test_anything_of_the_shape_will_do() -> None:
    assert checked_listener(None) is None
    good = RebalanceListener()
    assert checked_listener(good) is good
    with pytest.raises(InvalidArgument, match="has no assigned, revoked, lost"):
        checked_listener(object())
