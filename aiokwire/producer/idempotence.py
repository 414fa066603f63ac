"""Producer id, epoch and sequence numbers, by which a broker detects duplicates (KIP-98, KIP-360).

Each partition has its own sequence under the epoch at which it began. When the sequence breaks (a
batch failed though it may have been written, or the broker forgot the producer), the partition
continues under a new epoch from sequence 0; others are not affected. A batch whose response was
lost is first sent again under its old number: under a new one it could become a duplicate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio

from aiokwire.cluster import ANY, Client
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import (
    AuthenticationFailed,
    ConnectionFailed,
    KafkaError,
    ProtocolViolation,
    RequestTimedOut,
    RetriableError,
    UnsupportedVersion,
    error_for,
)
from aiokwire.log_fields import FieldLogger, get_logger
from aiokwire.protocol.messages import init_producer_id

if TYPE_CHECKING:
    from aiokwire.producer._delivery import Batch
    from aiokwire.producer._partition import Partition
    from aiokwire.producer.config import ProducerConfig

logger: FieldLogger = get_logger("aiokwire.producer")

MAX_EPOCH = 2**15 - 1
# After these the id is requested again: the next connection uses corrected credentials.
_MAY_PASS = (AuthenticationFailed, ConnectionFailed, ProtocolViolation, RequestTimedOut, RetriableError)


def _ignore(producer_id: int, producer_epoch: int) -> None:
    pass


def require_producer_id(answer: init_producer_id.InitProducerIdResponse) -> None:
    """Raises: ProtocolViolation: a response without an error code has no producer id."""
    if answer.producer_id < 0 or answer.producer_epoch < 0:
        raise ProtocolViolation(
            f"the broker's response to InitProducerId has no error, producer id {answer.producer_id} and epoch "
            f"{answer.producer_epoch}"
        )


class Idempotence:
    """The producer id and epoch of one producer.

    `enabled` becomes False when the brokers return none, unless the option requires one.
    """

    def __init__(self, *, wanted: bool, insisted: bool, on_change: Callable[[int, int], None] = _ignore) -> None:
        """`on_change(producer_id, producer_epoch)` receives each new producer id or epoch."""
        self.enabled: bool = wanted
        self.producer_id: int = -1
        self.producer_epoch: int = -1
        self._on_change = on_change
        self._insisted = insisted

    @property
    def ready(self) -> bool:
        """Whether batches can be numbered, or need no number."""
        return not self.enabled or self.producer_id >= 0

    async def obtain(self, client: Client, timeout: float) -> None:
        """Request a producer id; without one, disable idempotence unless the option requires it.

        Raises: KafkaError: the brokers refuse, or the timeout (seconds) ended.
        """
        request = init_producer_id.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=2**31 - 1)
        try:
            answer = await client.request(request, to=ANY, timeout=timeout)
        except UnsupportedVersion:
            self._give_up("the broker has no producer ids")
            return
        if answer.error_code:
            error = error_for(answer.error_code, "requesting a producer id", request="InitProducerId")
            if answer.error_code != ErrorCode.CLUSTER_AUTHORIZATION_FAILED or self._insisted:
                raise error
            self._give_up(str(error))
            return
        require_producer_id(answer)
        self._change(answer.producer_id, answer.producer_epoch)

    def _change(self, producer_id: int, producer_epoch: int) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self._on_change(producer_id, producer_epoch)

    def _give_up(self, reason: str) -> None:
        if self._insisted:
            raise UnsupportedVersion(
                f"enable_idempotence=True, but {reason}; omit the option to continue without idempotence, with "
                f"one batch in flight per partition",
                request="InitProducerId",
            )
        logger.info("idempotence is not available: %s; each partition sends one batch at a time, in order", reason)
        self.enabled = False

    def stamp(self, partition: Partition, batch: Batch) -> None:
        """Give a batch to be sent its number in the partition's sequence, unless it has one."""
        partition.stamp(batch, self.producer_id, self.producer_epoch)

    def _raise_epoch(self, partition: Partition) -> None:
        # The epoch may have been raised for another partition; this partition needs one that it has not used.
        if not self._has_identity_of(partition):
            return
        if self.producer_epoch < MAX_EPOCH - 1:
            self._change(self.producer_id, self.producer_epoch + 1)
        else:  # used up: `ready` is False until there is a new producer id
            self.producer_id = -1

    def _has_identity_of(self, partition: Partition) -> bool:
        return partition.producer_id == self.producer_id and partition.producer_epoch == self.producer_epoch

    def can_stamp(self, partition: Partition) -> bool:
        """Whether the partition can send a batch now; raises the epoch if it needs a new one."""
        if partition.needs_epoch and self.ready and not partition.in_doubt:
            self._raise_epoch(partition)
            if self.ready:
                partition.restart_sequence()
        return self.ready


class TransactionalIdentity(Idempotence):
    """The coordinator's producer id and epoch of a transactional id; each epoch has new sequences.

    `may_write(partition)`: whether the partition is part of the open transaction.
    """

    def __init__(self, may_write: Callable[[Partition], bool], on_change: Callable[[int, int], None] = _ignore) -> None:
        super().__init__(wanted=True, insisted=True, on_change=on_change)
        self._may_write = may_write

    def adopt(self, producer_id: int, producer_epoch: int) -> None:
        """Use what the coordinator returned.

        The epoch rises with each transaction (KIP-890), which is not reported as a change.
        """
        if producer_id != self.producer_id:
            self._change(producer_id, producer_epoch)
        self.producer_epoch = producer_epoch

    def can_stamp(self, partition: Partition) -> bool:
        """Whether a batch of this partition can be sent now, as part of the open transaction."""
        if not self.ready or not self._may_write(partition):
            return False
        if not self._has_identity_of(partition):
            partition.restart_sequence()
        return True


class ProducerIdRequest:
    """Requests a non-transactional producer's id, one request at a time, in its own task."""

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
        """`on_retry(error)`: a request failed and is retried; `on_refused(error)`: it is not."""
        self._client = client
        self._config = config
        self._idempotence = idempotence
        self._on_obtained = on_obtained
        self._on_retry = on_retry
        self._on_refused = on_refused
        self._requesting = False
        self._refused: KafkaError | None = None  # why no id can be obtained

    def want(self) -> None:
        """Request an id, unless a request is in flight."""
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
                except _MAY_PASS as error:
                    self._on_retry(error)
                    await anyio.sleep(backoff.next())
                except KafkaError as error:
                    self._refused = error.with_traceback(None)
                    self._on_refused(error)
                    return
        finally:
            self._requesting = False
        self._on_obtained()
