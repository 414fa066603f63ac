"""Reports records of `getone` and `getmany` to hooks; only where `on_read` is overridden."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from aiokwire.consumer.config import ConsumerConfig
from aiokwire.consumer.fetch_buffer import Only
from aiokwire.consumer.hooks_adapter import ConsumerHooks
from aiokwire.consumer.positions import PartitionState
from aiokwire.consumer.reader import Groups, Reader
from aiokwire.group import CurrentMembership


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
