"""The components of a consumer, and their connections."""

from __future__ import annotations

import dataclasses
from typing import Any

from aiokwire.cluster import Client
from aiokwire.consumer.config import ConsumerConfig
from aiokwire.consumer.fetch_handler import FetchHandler
from aiokwire.consumer.fetcher import Fetcher
from aiokwire.consumer.hooks_adapter import ConsumerHooks
from aiokwire.consumer.observed_reader import make_reader
from aiokwire.consumer.position_updater import PositionUpdater
from aiokwire.consumer.positions import PartitionState
from aiokwire.consumer.reader import Reader
from aiokwire.consumer.subscription import Subscription
from aiokwire.group import CurrentMembership, GroupOffsets


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
