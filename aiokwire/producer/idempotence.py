"""Producer id, epoch and sequence numbers: what lets a broker drop a batch that it has already (KIP-98, KIP-360).

Each partition runs a sequence of its own under the epoch at which it began. When its sequence breaks (a batch was given
up though it may have been written, or the broker forgot the producer), the partition goes on under a new epoch from
sequence 0; other partitions are not touched. A batch whose answer was lost is asked for under its old number first:
under a new one it could be written a second time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio

from aiokwire.cluster import ANY, Client
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import (
    ConnectionFailed,
    KafkaError,
    ProtocolViolation,
    RequestTimedOut,
    RetriableError,
    UnsupportedVersion,
    error_for,
)
from aiokwire.protocol import Buffer
from aiokwire.protocol.messages import init_producer_id
from aiokwire.records import set_producer_state

if TYPE_CHECKING:
    from aiokwire.producer._delivery import Batch
    from aiokwire.producer._partition import Partition
    from aiokwire.producer.config import ProducerConfig

logger = logging.getLogger("aiokwire.producer")

MAX_EPOCH = 2**15 - 1
SEQUENCES = 2**31


def next_sequence(sequence: int, count: int) -> int:
    """The sequence after a batch: 2^31 - 1 is followed by 0."""
    return (sequence + count) % SEQUENCES


def restamp(data: Buffer, producer_id: int, producer_epoch: int, sequence: int) -> memoryview:
    """A copy of a sealed batch under another epoch and sequence; its records stay as they are."""
    patched = memoryview(bytearray(data))
    set_producer_state(patched, producer_id, producer_epoch, sequence)
    return patched


def _ignore(producer_id: int, producer_epoch: int) -> None:
    pass


def require_producer_id(answer: init_producer_id.InitProducerIdResponse) -> None:
    """Do nothing for an answer that has a producer id.

    Raises: ProtocolViolation: there is neither an error code nor a producer id in it.
    """
    if answer.producer_id < 0 or answer.producer_epoch < 0:
        raise ProtocolViolation(
            f"the broker answered InitProducerId with no error, producer id {answer.producer_id} and epoch "
            f"{answer.producer_epoch}"
        )


class Idempotence:
    """The producer id and epoch of one producer; `enabled` turns False when brokers have none, if the option
    allows that."""

    def __init__(self, *, wanted: bool, insisted: bool, on_change: Callable[[int, int], None] = _ignore) -> None:
        """`on_change(producer_id, producer_epoch)` is called with a new producer id or epoch."""
        self.enabled = wanted
        self.producer_id = -1
        self.producer_epoch = -1
        self._on_change = on_change
        self._insisted = insisted

    @property
    def ready(self) -> bool:
        """Whether batches may be stamped, or need no stamp."""
        return not self.enabled or self.producer_id >= 0

    async def obtain(self, client: Client, timeout: float) -> None:
        """Ask the brokers for a producer id; without one when they have none and nobody insisted.

        Raises: KafkaError: they refuse, or the timeout (seconds) ended.
        """
        request = init_producer_id.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=2**31 - 1)
        try:
            answer = await client.request(request, to=ANY, timeout=timeout)
        except UnsupportedVersion:
            self._give_up("the broker knows no producer ids")
            return
        if answer.error_code:
            error = error_for(answer.error_code, "asking for a producer id", request="InitProducerId")
            if answer.error_code != ErrorCode.CLUSTER_AUTHORIZATION_FAILED or self._insisted:
                raise error
            self._give_up(str(error))
            return
        require_producer_id(answer)
        self.producer_id = answer.producer_id
        self.producer_epoch = answer.producer_epoch
        self._on_change(self.producer_id, self.producer_epoch)

    def _give_up(self, reason: str) -> None:
        if self._insisted:
            raise UnsupportedVersion(
                f"enable_idempotence=True, but {reason}; leave the option out to go on without: then a partition "
                f"sends one batch at a time",
                request="InitProducerId",
            )
        logger.info("no idempotence: %s; a partition sends one batch at a time, so that order is kept", reason)
        self.enabled = False

    def stamp(self, partition: Partition, batch: Batch) -> None:
        """Give a batch that is about to leave its place in the partition's sequence, unless it has one already."""
        if partition.producer_id < 0:
            partition.producer_id = self.producer_id
            partition.producer_epoch = self.producer_epoch
            partition.next_sequence = 0
        if (
            batch.base_sequence >= 0
            and batch.producer_id == partition.producer_id
            and batch.producer_epoch == partition.producer_epoch
        ):
            return
        batch.producer_id = partition.producer_id
        batch.producer_epoch = partition.producer_epoch
        batch.base_sequence = partition.next_sequence
        partition.next_sequence = next_sequence(partition.next_sequence, batch.count)
        if batch.data is not None:
            batch.data = restamp(batch.data, batch.producer_id, batch.producer_epoch, batch.base_sequence)

    def _bump(self, partition: Partition) -> None:
        # The epoch may have been raised for another partition already; this one needs one that it has not used.
        if partition.producer_id != self.producer_id or partition.producer_epoch != self.producer_epoch:
            return
        if self.producer_epoch < MAX_EPOCH - 1:
            self.producer_epoch += 1
            self._on_change(self.producer_id, self.producer_epoch)
        else:  # used up: `ready` is False until a new producer id came
            self.producer_id = -1

    def can_stamp(self, partition: Partition) -> bool:
        """Whether a batch of this partition can leave now; raises the epoch when the partition needs a new one."""
        if not self.ready:
            return False
        if partition.needs_epoch and not _is_in_doubt(partition):
            self._bump(partition)
            if not self.ready:
                return False
            partition.needs_epoch = False
            partition.producer_id = -1
        return True


def refuse_number(batch: Batch) -> None:
    """The broker says that it did not write the batch, nor will it under this number: it is free to get another."""
    batch.base_sequence = -1


def _is_in_doubt(partition: Partition) -> bool:
    """Whether the partition's next batch was sent under its present epoch, so that it may be written already.

    When that one is refused for the gap before it, so are those behind it: none of them is in doubt any more.
    """
    if not partition.queue:
        return False
    batch = partition.queue[0]
    return (
        batch.base_sequence >= 0
        and batch.producer_id == partition.producer_id
        and batch.producer_epoch == partition.producer_epoch
    )


class TransactionalIdentity(Idempotence):
    """The same under a transactional id: the coordinator gives id and epoch, each sequence begins anew with an epoch,
    and the transaction says which partitions may be written to (`may_write(partition)`)."""

    def __init__(self, may_write: Callable[[Partition], bool], on_change: Callable[[int, int], None] = _ignore) -> None:
        super().__init__(wanted=True, insisted=True, on_change=on_change)
        self._may_write = may_write

    def adopt(self, producer_id: int, producer_epoch: int) -> None:
        """Take over what the coordinator returned. The epoch rises with each transaction (KIP-890), which is not
        reported as a change."""
        changed = producer_id != self.producer_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        if changed:
            self._on_change(producer_id, producer_epoch)

    def can_stamp(self, partition: Partition) -> bool:
        """Whether a batch of this partition can leave now, as part of the open transaction."""
        if not self.ready or not self._may_write(partition):
            return False
        if partition.producer_id != self.producer_id or partition.producer_epoch != self.producer_epoch:
            partition.needs_epoch = False
            partition.producer_id = -1
        return True


class ProducerIdRequest:
    """Requests a producer id for a producer without transactions, one request at a time; in a task of its own."""

    def __init__(
        self,
        client: Client,
        config: ProducerConfig,
        idempotence: Idempotence,
        *,
        on_obtained: Callable[[], None],
        on_retry: Callable[[KafkaError], None],
        on_refused: Callable[[KafkaError], None],
    ) -> None:
        """`on_retry(error)` is called when a request failed and is repeated, `on_refused(error)` when it is not."""
        self._client = client
        self._config = config
        self._idempotence = idempotence
        self._on_obtained = on_obtained
        self._on_retry = on_retry
        self._on_refused = on_refused
        self._requesting = False
        self._refused: KafkaError | None = None  # why there will be none

    def want(self) -> None:
        """Request an id, unless a request is under way."""
        if self._refused is not None:
            self._on_refused(self._refused)
        elif not self._requesting:
            self._requesting = True
            self._client.spawn(self._obtain, name="producer: producer id")

    async def _obtain(self) -> None:
        backoff = self._client.new_backoff()
        try:
            while not self._idempotence.ready:
                try:
                    await self._idempotence.obtain(self._client, self._config.delivery_timeout)
                except (ConnectionFailed, ProtocolViolation, RequestTimedOut, RetriableError) as error:
                    self._on_retry(error)
                    await anyio.sleep(backoff.next())
                except KafkaError as error:
                    self._refused = error.with_traceback(None)
                    self._on_refused(error)
                    return
        finally:
            self._requesting = False
        self._on_obtained()
