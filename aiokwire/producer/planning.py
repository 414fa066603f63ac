"""The rules of when a batch is sealed and sent, as plain functions over plain values.

`scheduler.py` and `sender.py` call these functions; none of them waits, sends or reads a clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiokwire.producer._delivery import Batch
    from aiokwire.producer._partition import Partition

# An awaited record is sent at once while its broker has fewer requests than this in flight: one is in flight while the
# next one fills, so that neither side is idle and concurrent callers still share batches.
URGENT_IN_FLIGHT = 2
# A batch of this many bytes or more is compressed in a thread.
COMPRESS_IN_THREAD = 32 * 1024


def is_muted(partition: Partition, *, idempotent: bool) -> bool:
    """Whether no batch of the partition may be sent before the responses to those in flight.

    Without idempotence, always: a later batch would overtake a retry. With idempotence, while the
    first batch of a sequence or a retry is in flight: a broker without state of the producer (its
    topic was recreated, for example) accepts any batch as the first one, and a batch that it
    refuses (as a new leader does that is not ready) would be overtaken, too.
    """
    if not partition.in_flight:
        return False
    first = partition.in_flight[0]
    return not idempotent or first.base_sequence == 0 or first.attempts > 1


def goes_at_once(partition: Partition, *, requests_in_flight: int, idempotent: bool) -> bool:
    """Whether an open batch with an awaited record is sent now or grows until the next response."""
    if is_muted(partition, idempotent=idempotent):
        return False  # it could not be sent, so it grows
    return requests_in_flight < URGENT_IN_FLIGHT


def lingered(created: float, now: float, linger: float) -> bool:
    """Whether the linger of an open batch has ended."""
    return now >= created + linger  # the same sum as the timer's


def leaves_at_once(partition: Partition, *, free: bool, idempotent: bool) -> bool:
    """Whether an open batch that has lingered can be sent at once: its broker accepts a request,
    and no batch of its partition is before it. Otherwise it grows instead of queuing."""
    return free and not partition.queue and not is_muted(partition, idempotent=idempotent)


def may_leave(partition: Partition, now: float, *, idempotent: bool, max_in_flight: int) -> bool:
    """Whether the partition's next batch may be sent now.

    A retry, and the first batch under a new epoch, wait for the batches in flight.
    """
    if not partition.queue or partition.retry_at > now:
        return False
    in_flight = len(partition.in_flight)
    if not in_flight:
        return True
    if is_muted(partition, idempotent=idempotent) or partition.needs_epoch or partition.queue[0].attempts:
        return False
    return in_flight < max_in_flight


def plan_request(
    partitions: Iterable[Partition], now: float, *, idempotent: bool, max_in_flight: int, max_bytes: int, most: int
) -> list[Partition]:
    """The partitions whose next batch is sent in one request: one batch each, at most `most`
    batches and `max_bytes`, at least one batch."""
    planned: list[Partition] = []
    total = 0
    for partition in partitions:
        if not may_leave(partition, now, idempotent=idempotent, max_in_flight=max_in_flight):
            continue
        size = partition.queue[0].size
        if planned and total + size > max_bytes:
            continue
        planned.append(partition)
        if len(planned) == most:
            break
        total += size
    return planned


def earlier_is_unresolved(partition: Partition, batch: Batch) -> bool:
    """Whether a batch before this one is queued or in flight."""
    if partition.queue and partition.queue[0].order < batch.order:
        return True
    return any(other.order < batch.order for other in partition.in_flight)


def format_of(version: int) -> int:
    """Return the message format (magic 0, 1 or 2) that a version of the Produce API carries."""
    return 2 if version >= 3 else 1 if version == 2 else 0
