"""Read, process, write: each turn is a transaction; records count exactly once (KIP-98, KIP-447).

`transform` uses only the public parts of the consumer and the producer.
"""

from __future__ import annotations

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
from aiokwire.log_fields import FieldLogger, get_logger
from aiokwire.producer import Producer, Transaction

K = TypeVar("K")
V = TypeVar("V")
Handler = Callable[[list[ConsumerRecord[K, V]], Transaction], Awaitable[object]]

__all__ = ["Handler", "is_worth_repeating", "transform"]

logger: FieldLogger = get_logger(__name__)

# Errors that a repetition would meet again.
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
    """Read records, process them in `handler`, commit output with positions, until cancelled.

        async def enrich(records, tx):
            for record in records:
                await producer.submit("enriched", work_on(record), key=record.key)

        await aiokwire.transform(consumer, producer, enrich)

    The consumer needs a `group_id` and partitions, the producer a `transactional_id`; nothing else
    may use either meanwhile. `handler` is called with 1 to `max_records` records and the
    transaction; it need not wait for deliveries. A transaction is opened only for records; `poll`
    is the timeout of one wait for them, in seconds.

    If a transaction is aborted (the coordinator timed it out, a broker was unavailable for too
    long, `handler` called `tx.abort()`), the consumer rewinds and the same records are processed
    again, after pauses that grow from `retry_backoff_ms` to `retry_backoff_max_ms` of the producer.
    Permanent errors, such as a record that brokers refuse, are raised. An exception of `handler`
    aborts, rewinds the consumer, and is raised: the next call of `transform` repeats that turn.

    Raises: TransactionAborted: repeating would not help. TransactionFailed: create a new producer
    with the same transactional id and call again, with the same consumer or a new one: by then the
    outcome of the last turn is decided, and the consumer continues after it or repeats it.
    FencedError: a newer instance took over: stop. Brokers before 3.0 also raise it for a turn that
    took longer than `transaction_timeout_ms`: continue as after TransactionFailed. And the error
    that stops the consumer.
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
            logger.warning("attempt %d was aborted, retrying in %.3f s: %s", backoff.attempts, pause, reason)
        await anyio.sleep(pause)


async def _turn(
    transaction: Transaction, handler: Handler[K, V], records: list[ConsumerRecord[K, V]]
) -> KafkaError | None:
    """Run one transaction; return why it must be repeated, or None if it was committed.

    Raises: an error that a repetition would meet again.
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
    return TransactionAborted("the handler aborted the transaction") if transaction.aborted else None


def is_worth_repeating(error: BaseException) -> bool:
    """Return whether a transaction that failed with this error may succeed when it is repeated."""
    while isinstance(error, (TransactionAborted, DeliveryFailed)):
        reason = error.reason if isinstance(error, TransactionAborted) else error.last_error
        if reason is None:
            return True
        error = reason
    if isinstance(error, _LASTING):
        return False
    return not (isinstance(error, BrokerError) and error.code in _LASTING_CODES)
