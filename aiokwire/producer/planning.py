"""What goes when: the producer's decisions as plain functions over plain values.

`scheduler.py` and `sender.py` call these; nothing here waits, sends or looks at a clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiokwire.producer._delivery import Batch
    from aiokwire.producer._partition import Partition

# An awaited record goes at once while its broker has fewer requests than this to answer: one is on its way while the
# next one fills, so that neither side idles and concurrent senders still share batches.
URGENT_IN_FLIGHT = 2
# A batch of that many bytes or more is compressed in a thread.
COMPRESS_IN_THREAD = 32 * 1024


def is_muted(partition: Partition, *, idempotent: bool) -> bool:
    """Whether no batch of the partition may leave before all on their way have arrived.

    So it is without idempotence, where a retry would be overtaken. With it, while the first batch of a sequence, or
    one that is sent again, is on its way: a broker that knows nothing of the producer, as one with a topic made anew,
    begins with whichever batch comes, and one that it refuses, as a leader that does not serve yet, would be overtaken
    too.
    """
    if not partition.in_flight:
        return False
    first = partition.in_flight[0]
    return not idempotent or first.base_sequence == 0 or first.attempts > 1


def goes_at_once(partition: Partition, *, requests_in_flight: int, idempotent: bool) -> bool:
    """Whether an open batch that somebody awaits leaves now, or gathers more records until an answer comes."""
    if is_muted(partition, idempotent=idempotent):
        return False  # it could not leave anyway, so it may as well grow
    return requests_in_flight < URGENT_IN_FLIGHT


def lingered(created: float, now: float, linger: float) -> bool:
    """Whether an open batch has waited long enough."""
    return now >= created + linger  # the very sum that the timer was set to


def leaves_at_once(partition: Partition, *, free: bool, idempotent: bool) -> bool:
    """Whether an open batch that has lingered would leave if it were sealed now: its broker takes another request, and
    no batch of its partition is before it. One that would only queue up gathers records instead."""
    return free and not partition.queue and not is_muted(partition, idempotent=idempotent)


def may_leave(partition: Partition, now: float, *, idempotent: bool, max_in_flight: int) -> bool:
    """Whether the partition's next batch may go to its broker now.

    A retry, and the first batch under a new epoch, wait for those in flight.
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
    """The partitions whose next batch goes into one request: one batch each, at most `most` of them, and `max_bytes`
    together, at least one."""
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
    """Whether a batch before this one is still under way."""
    if partition.queue and partition.queue[0].order < batch.order:
        return True
    return any(other.order < batch.order for other in partition.in_flight)


def format_of(version: int) -> int:
    """The message format that a version of the Produce API carries."""
    return 2 if version >= 3 else 1 if version == 2 else 0
