"""Fetches of a task: at offsets, one in advance, from the leader or its preferred replica.

    start(cursor) sends -> finish(ahead) waits, reads, retries -> cursor.position moves

Used by `scan`. No group, no fetch session, no buffer: batches are passed on undecoded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import anyio

from aiokwire.backoff import Deadline
from aiokwire.cluster import EARLIEST, LATEST, Client, list_offsets, new_fetch_request
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import ConnectionFailed, KafkaError, OffsetOutOfRange, RecordRejected, RequestTimedOut, error_for
from aiokwire.protocol import ZERO_UUID
from aiokwire.protocol.messages import fetch
from aiokwire.records import RecordBatch, read_batches, select_visible
from aiokwire.spark.source.planning import Loss, Range
from aiokwire.types import IsolationLevel, TopicPartition

if TYPE_CHECKING:
    from aiokwire.consumer import ConsumerConfig

LANE: Final = "spark"

_TOPIC_GONE: Final = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID}
)


class Cursor:
    """The position in a range."""

    __slots__ = ("end", "limit", "position", "rack", "replica", "topic_id", "tp")

    def __init__(self, whole: Range, topic_id: bytes, config: ConsumerConfig) -> None:
        self.tp: TopicPartition = whole.tp
        self.position: int = whole.start
        self.end: int = whole.end
        self.topic_id: bytes = topic_id  # at planning time; all zeros from old brokers
        self.limit: int = config.max_partition_fetch_bytes  # of a fetch; grows for a batch that an old broker truncates
        self.rack: str = config.client_rack  # sent to the leader until its preferred replica fails
        self.replica: int | None = None  # the leader's preferred replica (KIP-392)

    @property
    def done(self) -> bool:
        return self.position >= self.end


class Ahead(NamedTuple):
    """A fetch in flight, or the error that prevented it."""

    answer: asyncio.Future[fetch.FetchResponse] | None
    who: str = ""
    failure: KafkaError | None = None


class Piece(NamedTuple):
    """Undecoded batches of one partition; records from `start` to `end` (exclusive) count."""

    tp: TopicPartition
    batches: list[RecordBatch]
    start: int
    end: int
    hidden: Sequence[RecordBatch] = ()
    """Control batches and batches of aborted transactions, with `keep_hidden`."""


class LostData(OffsetOutOfRange):
    """Records are no longer in the log; `loss` names their offsets."""

    def __init__(self, loss: Loss, also: Sequence[Loss] = ()) -> None:
        losses = "; ".join(map(str, [loss, *also[:9]])) + (f"; and {len(also) - 9} more" if len(also) > 9 else "")
        super().__init__(
            f"{losses}. Set onDataLoss=report to log the missing offsets and read the rest",
            topic=loss.topic,
            partition=loss.partition,
            offset=loss.start,
        )
        self.loss = loss


class Fetching:
    """Fetches for the cursors of a task, on its client's loop."""

    def __init__(self, client: Client, config: ConsumerConfig, *, keep_hidden: bool = False) -> None:
        self._client = client
        self._config = config
        self._isolation = config.isolation
        self._keep_hidden = keep_hidden  # return batches that a reader does not see, too

    # --- requests -----------------------------------------------------------------------------------------------------

    async def start(self, cursor: Cursor) -> Ahead:
        """Send a fetch; `finish` raises its errors."""
        try:
            node = await self._node(cursor)
            connection = await self._client.connection(node, LANE)
            wait = self._config.fetch_max_wait
            request, version = new_fetch_request(
                connection.versions,
                {cursor.tp: cursor.position},
                {cursor.tp: cursor.limit},
                {cursor.tp.topic: cursor.topic_id},
                max_wait=wait,
                max_bytes=max(cursor.limit, self._config.fetch_max_bytes),
                isolation=self._isolation,
                rack=cursor.rack,
            )
            timeout = self._config.request_timeout + wait
            return Ahead(connection.send(request, version=version, timeout=timeout), connection.who)
        except KafkaError as error:
            return Ahead(None, failure=error)

    async def _node(self, cursor: Cursor) -> int:
        if cursor.replica is not None:
            return cursor.replica
        client = self._client
        if client.cluster.partition(cursor.tp) is None:
            await client.metadata.wait_for_topics({cursor.tp.topic}, self._config.request_timeout)
        return client.cluster.require_leader(cursor.tp)

    # --- responses ----------------------------------------------------------------------------------------------------

    async def finish(self, cursor: Cursor, ahead: Ahead) -> Piece:
        """Wait for records and move the cursor past them; retry until the range ends.

        Raises: LostData: the log does not have the position, or the topic was recreated;
            RequestTimedOut: nothing was received within the API timeout; CorruptRecord;
            BrokerError: the broker refuses.
        """
        deadline = Deadline(self._config.default_api_timeout, f"reading {cursor.tp} at offset {cursor.position}")
        backoff, last = self._client.new_backoff(), None
        while True:
            try:
                data = await self._answer(cursor, ahead)
                if data is not None:
                    if (piece := self._read(cursor, data)) is not None:
                        return piece
                    backoff.reset()
            except (ConnectionFailed, RequestTimedOut) as error:
                last = error
                data = None
                self._leave_replica(cursor)
                self._client.metadata.request_update(f"reading {cursor.tp}: {error}")
            deadline.check(last)
            if data is None:
                await anyio.sleep(min(backoff.next(), deadline.remaining))
            ahead = await self.start(cursor)

    async def _answer(self, cursor: Cursor, ahead: Ahead) -> fetch.PartitionData | None:
        """Return the partition's data, None to retry after a pause."""
        if ahead.answer is None:
            assert ahead.failure is not None
            if isinstance(ahead.failure, (ConnectionFailed, RequestTimedOut)):
                raise ahead.failure
            await self._on_error(cursor, ahead.failure)
            return None
        response = await ahead.answer
        code = response.error_code
        data = next((data for topic in response.responses for data in topic.partitions), None)
        if data is None and not code:
            return None  # throttled: the broker leaves the partition out
        if data is not None and data.error_code:
            code = data.error_code
        if not code:
            assert data is not None
            return data
        if code == ErrorCode.OFFSET_OUT_OF_RANGE and cursor.replica is None:
            raise LostData(await self._loss(cursor))
        what = f"fetching {cursor.tp} at offset {cursor.position} from {ahead.who}"
        error = error_for(code, what, topic=cursor.tp.topic, partition=cursor.tp.partition, request="Fetch")
        await self._on_error(cursor, error)
        return None

    async def _on_error(self, cursor: Cursor, error: KafkaError) -> None:
        """Prepare a retry, or raise an error that is not retriable."""
        code = getattr(error, "code", None)
        if self._leave_replica(cursor):
            return  # only the leader's errors count
        if code == ErrorCode.CORRUPT_MESSAGE or not getattr(error, "retriable", False):
            raise error
        if code in _TOPIC_GONE:
            await self._check_topic(cursor)
        self._client.metadata.request_update(f"reading {cursor.tp}: {error}")

    def _leave_replica(self, cursor: Cursor) -> bool:
        """Return to the leader after an error of a replica; False if the leader was asked."""
        if cursor.replica is None:
            return False
        cursor.replica, cursor.rack = None, ""
        return True

    async def _check_topic(self, cursor: Cursor) -> None:
        """Raises: LostData: the topic was recreated."""
        cluster = await self._client.metadata.update(self._config.request_timeout)
        known = cluster.topic_id(cursor.tp.topic)
        if known is not None and ZERO_UUID != cursor.topic_id != known:
            loss = Loss(*cursor.tp, cursor.position, cursor.end, "the topic was deleted and recreated")
            raise LostData(loss)

    async def _loss(self, cursor: Cursor) -> Loss:
        earliest, latest = await log_range(self._client, cursor.tp, self._config.default_api_timeout)
        if cursor.position < earliest:
            return Loss(*cursor.tp, cursor.position, min(earliest, cursor.end), f"the log begins at {earliest}")
        return Loss(*cursor.tp, cursor.position, cursor.end, f"the log ends at {latest}")

    def _read(self, cursor: Cursor, data: fetch.PartitionData) -> Piece | None:
        """Read the batches and move the cursor; return None to send another fetch."""
        if data.preferred_read_replica >= 0 and cursor.replica is None:
            cursor.replica = data.preferred_read_replica
            return None
        begin = cursor.position
        if not data.records:
            stable = data.last_stable_offset if self._isolation is IsolationLevel.READ_COMMITTED else -1
            if (stable if stable >= 0 else data.high_watermark) < cursor.end:
                return None
            cursor.position = cursor.end  # compaction removed the rest of the range
            return Piece(cursor.tp, [], begin, cursor.end)
        check = self._config.check_crcs
        limit = self._config.max_decompressed_bytes
        batches = read_batches(data.records, *cursor.tp, check_crcs=check, max_decompressed=limit)
        if not batches:
            self._grow(cursor)
            return None
        visible = select_visible(batches, begin, self._aborted(data))
        cursor.position = visible.end
        chosen = [batch for batch, _ in visible.batches if batch.base_offset < cursor.end]
        hidden: Sequence[RecordBatch] = ()
        if self._keep_hidden:
            shown = {id(batch) for batch, _ in visible.batches}
            hidden = [batch for batch in batches if id(batch) not in shown and begin <= batch.last_offset]
        return Piece(cursor.tp, chosen, begin, cursor.end, hidden)

    def _aborted(self, data: fetch.PartitionData) -> list[tuple[int, int]] | None:
        if self._isolation is not IsolationLevel.READ_COMMITTED:
            return None
        return [(each.producer_id, each.first_offset) for each in data.aborted_transactions or ()]

    def _grow(self, cursor: Cursor) -> None:
        """Raise the limit at which an old broker (before KIP-74) truncated the first batch."""
        most = self._config.receive_message_max_bytes // 2
        if cursor.limit >= most:
            raise RecordRejected(
                f"{cursor.tp}: the batch at offset {cursor.position} is larger than {most} bytes: raise "
                "kafka.receive.message.max.bytes",
                code=ErrorCode.MESSAGE_TOO_LARGE,
                topic=cursor.tp.topic,
                partition=cursor.tp.partition,
                request="Fetch",
            )
        cursor.limit = min(2 * cursor.limit, most)


async def log_range(client: Client, tp: TopicPartition, timeout: float) -> tuple[int, int]:
    """Return the offsets at which a partition's log begins and ends."""
    begin, end = [await _edge(client, {tp: time}, timeout) for time in (EARLIEST, LATEST)]
    return begin[tp], end[tp]


async def _edge(client: Client, times: Mapping[TopicPartition, int], timeout: float) -> dict[TopicPartition, int]:
    return {tp: found.offset for tp, found in (await list_offsets(client, times, timeout=timeout)).items()}
