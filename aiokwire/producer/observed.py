"""Calls `on_accepted` and `on_refused` for each record; used only where a hook overrides them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from aiokwire.producer._accumulator import Accumulator
from aiokwire.producer._delivery import Delivery, WaitingRecord, delivery_of
from aiokwire.producer.buffer_pool import Record, WaitingLine
from aiokwire.producer.hooks import ProducerHooks
from aiokwire.types import Headers


class ObservedAccumulator:
    """An accumulator and its waiting line: reports the result of each record. On one loop."""

    def __init__(self, accumulator: Accumulator, line: WaitingLine, hooks: ProducerHooks) -> None:
        self._accumulator = accumulator
        self._line = line
        self._hooks = hooks

    def append(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp: int | None,
        headers: Headers | None,
        mode: int,
    ) -> Delivery | None:
        """See `Accumulator.append`. A record that must wait is reported by `join`."""
        try:
            taken = self._accumulator.append(topic, value, key, partition, timestamp, headers, mode)
        except BaseException as error:
            self._hooks.refused(headers, error)
            raise
        if taken is not None:
            self._hooks.accepted(headers, taken)
        return taken

    async def join(self, record: Record) -> Delivery:
        """See `WaitingLine.join`."""
        _, _, _, _, _, headers, _ = record
        try:
            delivery = await self._line.join(record)
        except BaseException as error:
            self._hooks.refused(headers, error)
            raise
        self._hooks.accepted(headers, delivery)
        return delivery

    def submit(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Headers | None = None,
    ) -> Coroutine[Any, Any, Delivery]:
        """See `Accumulator.submit`."""
        try:
            submitted = self._accumulator.submit(
                topic, value, key, partition=partition, timestamp=timestamp, headers=headers
            )
        except BaseException as error:
            self._hooks.refused(headers, error)
            raise
        taken = delivery_of(submitted)
        if taken is not None:
            self._hooks.accepted(headers, taken)
        elif isinstance(submitted, WaitingRecord):
            self._report_later(headers, submitted)
        return submitted

    def submit_nowait(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Headers | None = None,
    ) -> Delivery:
        """See `Accumulator.submit_nowait`."""
        try:
            taken = self._accumulator.submit_nowait(
                topic, value, key, partition=partition, timestamp=timestamp, headers=headers
            )
        except BaseException as error:
            self._hooks.refused(headers, error)
            raise
        self._hooks.accepted(headers, taken)
        return taken

    def _report_later(self, headers: Headers | None, waiting: WaitingRecord) -> None:
        """Report a record once it has left the line, whether its `submit` is awaited or not."""

        def report(_future: object) -> None:
            if waiting.delivery is not None:
                self._hooks.accepted(headers, waiting.delivery)
            elif waiting.error is not None:
                self._hooks.refused(headers, waiting.error)

        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiter.add_done_callback(report)
        waiting.add_waiter(waiter)


def observed(
    accumulator: Accumulator, line: WaitingLine, hooks: ProducerHooks | None
) -> tuple[Accumulator | ObservedAccumulator, Callable[[Record], Coroutine[Any, Any, Delivery]]]:
    """Return what accepts records, and the function that waits for room: observed if hooks ask."""
    if hooks is None or not hooks.wants_outcomes:
        return accumulator, line.join
    both = ObservedAccumulator(accumulator, line, hooks)
    return both, both.join
