"""The components of a consumer, and their connections."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

from aiokwire.cluster import Client
from aiokwire.consumer.config import ConsumerConfig
from aiokwire.consumer.fetch_buffer import Only
from aiokwire.consumer.fetch_handler import FetchHandler
from aiokwire.consumer.fetcher import Fetcher
from aiokwire.consumer.hooks_adapter import ConsumerHooks
from aiokwire.consumer.position_updater import PositionUpdater
from aiokwire.consumer.positions import PartitionState
from aiokwire.consumer.reader import Groups, Reader
from aiokwire.consumer.subscription import Subscription
from aiokwire.group import CurrentMembership, GroupOffsets


class ObservedReader(Reader):
    """A reader that reports what its calls return, and how long they took by the loop's clock."""

    def __init__(
        self,
        config: ConsumerConfig,
        hooks: ConsumerHooks,
        membership: CurrentMembership,
        on_room: Callable[[PartitionState], None],
        on_wait: Callable[[], None],
    ) -> None:
        super().__init__(config, hooks, membership, on_room, on_wait)
        self._hooks = hooks

    async def one(self, timeout: float | None = None) -> Any:
        """See `Reader.one`."""
        began = self._clock()
        record = await super().one(timeout)
        self._hooks.read([record], self._clock() - began)
        return record

    async def many(self, limit: int, timeout: float | None, only: Only, groups: Groups | None = None) -> list[Any]:
        """See `Reader.many`."""
        began = self._clock()
        records = await super().many(limit, timeout, only, groups)
        read = records if groups is None else list(itertools.chain.from_iterable(groups.values()))
        if read:
            self._hooks.read(read, self._clock() - began)
        return records


def make_reader(
    config: ConsumerConfig,
    hooks: ConsumerHooks,
    membership: CurrentMembership,
    on_room: Callable[[PartitionState], None],
    on_wait: Callable[[], None],
) -> Reader:
    """Return a reader: an `ObservedReader` if a hook wants to see what it returns."""
    kind = ObservedReader if hooks.wants_reads else Reader
    return kind(config, hooks, membership, on_room, on_wait)


@dataclasses.dataclass(frozen=True, slots=True)
class ConsumerParts:
    """A consumer's components, with or without a group. Created by `Consumer`; run on its loop."""

    client: Client
    config: ConsumerConfig[Any, Any]
    hooks: ConsumerHooks
    membership: CurrentMembership
    subscription: Subscription
    reader: Reader
    fetcher: Fetcher
    updater: PositionUpdater


def make_parts(
    client: Client, config: ConsumerConfig[Any, Any], offsets: GroupOffsets | None, hooks: ConsumerHooks
) -> ConsumerParts:
    """Create a consumer's parts. `offsets`: the start positions; None: the reset policy sets them.

    Parts call each other in a circle: a drained partition is fetched again, and a response may need
    a position lookup. The functions that close the circle are not consumer methods, as background
    tasks hold them: a dropped consumer can be collected, and warns that it was not closed.
    """

    def on_room(state: PartitionState) -> None:
        fetcher.wake(state)
        if not state.is_fetchable:
            updater.wake()

    def on_wait() -> None:
        if reader.buffer.held:  # other partitions may hold the memory that the reader's need
            fetcher.wake_all()

    def on_reset() -> None:
        updater.wake()

    def on_source() -> None:
        updater.regroup()

    membership = CurrentMembership()
    reader = make_reader(config, hooks, membership, on_room, on_wait)
    subscription = Subscription(config.reset if offsets is None else None, on_first=reader.buffer.notify)
    handler = FetchHandler(client, config, reader.buffer, hooks, on_reset=on_reset, on_source=on_source)
    fetcher = Fetcher(client, config, subscription.states, reader, handler, hooks)
    updater = PositionUpdater(client, config, subscription, reader, fetcher, handler, offsets, hooks)
    return ConsumerParts(client, config, hooks, membership, subscription, reader, fetcher, updater)
