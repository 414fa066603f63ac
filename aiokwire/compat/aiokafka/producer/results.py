"""Errors of records in aiokafka's form."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from aiokwire import errors
from aiokwire.compat.aiokafka.errors import translated
from aiokwire.producer import Delivery

Future = asyncio.Future[Any]


def settle_failure(delivery: Delivery, future: Future) -> None:
    """Give a record's error to its future."""
    if future.done():  # cancelled
        return
    error = delivery.exception()
    future.set_exception(translated(error) if isinstance(error, errors.KafkaError) else error or KeyError())
    if isinstance(error, errors.TransactionAborted):
        future.exception()  # the commit or abort reports it: asyncio need not, if the future is not awaited


def settle_together(deliveries: Sequence[Delivery], settle: Callable[[Delivery, Future], None], future: Future) -> None:
    """Settle a batch's future with its first failure, else with its first record."""
    left = len(deliveries)

    def on_done(delivery: Delivery, future: Future) -> None:
        nonlocal left
        left -= 1
        if delivery.error is not None:
            settle(delivery, future)
        elif not left:
            settle(deliveries[0], future)

    for delivery in deliveries:
        delivery.call_when_done(on_done, future)


def refusal(error: errors.KafkaError, key: object, value: object) -> BaseException:
    """Return the error for a record that was not accepted."""
    if isinstance(error, errors.InvalidArgument):
        given = (key, value)
        wrong = any(each is not None and not isinstance(each, (bytes, bytearray, memoryview)) for each in given)
        return TypeError(str(error)) if wrong else ValueError(str(error))
    return translated(error)
