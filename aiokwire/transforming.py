"""Read, work, write: each turn one transaction, so that each record counts once (KIP-98, KIP-447).

`transform` is what services call; it stands on nothing but the public parts of consumer and producer.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn, TypeVar

import anyio

from aiokwire.consumer import Consumer, ConsumerRecord
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import (
    AuthorizationError,
    BrokerError,
    DeliveryFailed,
    FencedError,
    KafkaError,
    RecordRejected,
    TransactionAborted,
    TransactionFailed,
    UnsupportedVersion,
)
from aiokwire.producer import Producer, Transaction

K = TypeVar("K")
V = TypeVar("V")
Handler = Callable[[list[ConsumerRecord[K, V]], Transaction], Awaitable[object]]

__all__ = ["Handler", "is_worth_repeating", "transform"]

logger = logging.getLogger(__name__)

# What a repetition meets again.
_LASTING = (RecordRejected, AuthorizationError, UnsupportedVersion)
_LASTING_CODES = frozenset(
    {
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    }
)


async def transform(
    consumer: Consumer[K, V],
    producer: Producer[Any, Any],
    handler: Handler[K, V],
    *,
    max_records: int = 500,
    poll: float = 1.0,
    rng: random.Random | None = None,
) -> NoReturn:
    """Read records, have `handler` work on them, and commit what it sent together with how far was read; until
    cancelled.

        async def enrich(records, tx):
            for record in records:
                await producer.submit("enriched", work_on(record), key=record.key)

        await aiokwire.transform(consumer, producer, enrich)

    The consumer needs a `group_id` and partitions, the producer a `transactional_id`; nothing else may read from the
    one or write with the other meanwhile. `handler` is called with 1 to `max_records` records and the transaction; it
    need not wait for deliveries. A transaction is only opened when records came, which is waited for by `poll`
    seconds at a time.

    When a transaction does not take place (a coordinator timed it out, a broker was away for too long, `handler` called
    `tx.abort()`), the consumer goes back and the same records are worked on again, after pauses that grow from
    `retry_backoff_ms` to `retry_backoff_max_ms` of the producer. What will not pass, such as a record that brokers
    refuse, is raised. An exception of `handler` aborts, puts the consumer back, and is raised: the next call of
    `transform` repeats that turn.

    Raises: TransactionAborted: repeating would not help. TransactionFailed: make a new producer with the same
    transactional id and call again, with the same consumer or a new one: whether the last turn took place is settled
    by then, and the consumer goes on behind it or repeats it. FencedError: a newer instance took over: stop. Brokers
    before 3.0 also raise it for a turn that took longer than `transaction_timeout_ms`: go on as after
    TransactionFailed. And what keeps the consumer from reading.
    """
    config = producer.config
    rng = rng if rng is not None else random.Random()
    backoff = config.new_backoff(rng)
    while True:
        since = consumer.positions()
        records = await consumer.getmany(max_records, timeout=poll)
        if not records:
            continue
        reason = await _turn(producer.transaction(consumer, since=since), handler, records)
        if reason is None:
            backoff.reset()
            continue
        pause = backoff.next()
        if backoff.is_worth_logging:
            logger.warning("attempt %d aborted, again in %.3f s: %s", backoff.attempts, pause, reason)
        await anyio.sleep(pause)


async def _turn(
    transaction: Transaction, handler: Handler[K, V], records: list[ConsumerRecord[K, V]]
) -> KafkaError | None:
    """One transaction; why it has to be repeated, or None when it was committed.

    Raises: what a repetition does not help against.
    """
    try:
        async with transaction as tx:
            await handler(records, tx)
    except (FencedError, TransactionFailed):
        raise
    except KafkaError as error:
        failure = transaction.failure or error
        if (isinstance(error, TransactionAborted) or transaction.failure is not None) and is_worth_repeating(failure):
            return failure
        raise
    return TransactionAborted("the handler aborted it") if transaction.aborted else None


def is_worth_repeating(error: BaseException) -> bool:
    """Whether a transaction that failed for this reason may succeed when it is repeated."""
    while isinstance(error, (TransactionAborted, DeliveryFailed)):
        reason = error.reason if isinstance(error, TransactionAborted) else error.last_error
        if reason is None:
            return True
        error = reason
    if isinstance(error, _LASTING):
        return False
    return not (isinstance(error, BrokerError) and error.code in _LASTING_CODES)
