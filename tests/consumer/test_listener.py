"""The user's listener: its methods, its timeout, its errors."""

from __future__ import annotations

import anyio
import pytest

from aiokwire.consumer import RebalanceListener
from aiokwire.consumer.listener import call_listener, checked_listener
from aiokwire.errors import InvalidArgument
from aiokwire.types import TopicPartition

ONE = frozenset({TopicPartition("t", 0)})


async def test_lost_calls_revoked_unless_overridden() -> None:
    revoked_partitions: list[frozenset[TopicPartition]] = []

    class Keeps(RebalanceListener):
        async def revoked(self, partitions: frozenset[TopicPartition]) -> None:
            revoked_partitions.append(partitions)

    assert await call_listener(Keeps().lost, ONE, 1.0) is None
    assert revoked_partitions == [ONE]
    assert await call_listener(Keeps().assigned, ONE, 1.0) is None


async def test_the_error_names_a_listener_that_raises_or_times_out() -> None:
    class Bad(RebalanceListener):
        async def assigned(self, partitions: frozenset[TopicPartition]) -> None:
            raise LookupError("no table")

        async def revoked(self, partitions: frozenset[TopicPartition]) -> None:
            await anyio.sleep_forever()

    failed = await call_listener(Bad().assigned, ONE, 1.0)
    assert "Bad.assigned failed: LookupError: no table" in str(failed)
    assert failed is not None
    assert isinstance(failed.__cause__, LookupError)
    assert "Bad.revoked did not return within 0.0 s" in str(await call_listener(Bad().revoked, ONE, 0.01))


async def test_a_cancelled_rebalance_is_not_an_error_of_the_listener() -> None:
    with anyio.CancelScope() as scope:
        scope.cancel()
        await call_listener(RebalanceListener().assigned, ONE, 1.0)
        await anyio.lowlevel.checkpoint()
        raise AssertionError("the cancellation was swallowed")
    assert scope.cancelled_caught


def test_any_object_with_the_methods_is_a_listener() -> None:
    assert checked_listener(None) is None
    good = RebalanceListener()
    assert checked_listener(good) is good
    with pytest.raises(InvalidArgument, match="has no assigned, revoked, lost"):
        checked_listener(object())
