"""Fetch without a session, a position or a group: the caller keeps the offsets. See `Client.fetch`.

For tools that keep their own state; the consumer has a faster path.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import anyio

from aiokwire.backoff import Deadline
from aiokwire.cluster.fetch_request import new_fetch_request
from aiokwire.cluster.leaders import Answers, ask_leaders
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import OffsetOutOfRange, RecordRejected, error_for
from aiokwire.protocol import ZERO_UUID
from aiokwire.protocol.messages import fetch as messages
from aiokwire.records import Record, RecordBatch, read_batches, select_visible
from aiokwire.threads import run_in_thread
from aiokwire.types import IsolationLevel, TopicPartition

if TYPE_CHECKING:
    from aiokwire.cluster.client import Client
    from aiokwire.net import Connection

LANE: Final = "direct fetch"  # a broker may delay its response
DEFAULT_MAX_BYTES: Final = 1024 * 1024
DEFAULT_MAX_WAIT: Final = 0.5


class Fetched(NamedTuple):
    """The batches of a partition from an offset on."""

    offset: int
    """The requested offset."""
    next_offset: int
    """Where to fetch next; equal to `offset` if there was no batch."""
    batches: list[RecordBatch]
    """Undecoded; without control batches and, with `read_committed`, without aborted transactions."""
    high_watermark: int
    """The high watermark: the end for readers."""
    last_stable_offset: int
    """The last stable offset, the end with `read_committed`; -1 from brokers before 0.11."""
    log_start_offset: int
    """-1 from brokers before 1.0."""

    def records(self) -> list[Record]:
        """The records from `offset` on.

        Raises: CorruptRecord: naming topic, partition and offset.
        """
        return [record for batch in self.batches for record in batch.records(self.offset)]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The limits of a fetch: its size, and how long a broker may wait (seconds)."""

    max_bytes: int = DEFAULT_MAX_BYTES
    """For each partition. The first batch is returned whole, whatever its size."""
    min_bytes: int = 1
    max_wait: float = DEFAULT_MAX_WAIT
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED


class _TooSmall(Exception):
    """An old broker truncated the first batch at the limit (before KIP-74)."""


async def fetch(
    client: Client, offsets: Mapping[TopicPartition, int], terms: Terms, *, timeout: float
) -> dict[TopicPartition, Fetched]:
    """See `Client.fetch`."""
    most = client.config.receive_message_max_bytes // 2
    limits = dict.fromkeys(offsets, min(terms.max_bytes, most))

    async def ask(
        connection: Connection, asked: Mapping[TopicPartition, int], attempt_timeout: float
    ) -> Answers[messages.PartitionData]:
        ids = {name: client.cluster.topic_id(name) or ZERO_UUID for name in {tp.topic for tp in asked}}
        return await _ask_leader(connection, asked, {tp: limits[tp] for tp in asked}, ids, terms, attempt_timeout)

    deadline = Deadline(timeout, f"fetching from {len(offsets)} partitions")
    found: dict[TopicPartition, Fetched] = {}
    left = dict(offsets)
    while left:
        for tp, data in (await ask_leaders(client, left, ask, deadline, lane=LANE)).items():
            try:
                found[tp] = await _read(tp, left[tp], data, terms.isolation)
            except _TooSmall:
                if limits[tp] >= most:
                    raise RecordRejected(
                        f"{tp}: the batch at offset {left[tp]} is larger than {most} bytes: raise "
                        "receive_message_max_bytes",
                        code=ErrorCode.MESSAGE_TOO_LARGE,
                        topic=tp.topic,
                        partition=tp.partition,
                        request="Fetch",
                    ) from None
                limits[tp] = min(2 * limits[tp], most)
            else:
                del left[tp]
        deadline.check()
    return found


async def _read(tp: TopicPartition, offset: int, data: messages.PartitionData, isolation: IsolationLevel) -> Fetched:
    batches = read_batches(data.records, *tp) if data.records else []
    if data.records and not batches:
        raise _TooSmall
    aborted = None
    if isolation is IsolationLevel.READ_COMMITTED and data.last_stable_offset >= 0:
        aborted = [(one.producer_id, one.first_offset) for one in data.aborted_transactions or ()]
    visible = select_visible(batches, offset, aborted)
    chosen = [batch for batch, _ in visible.batches]
    for batch in chosen:
        if batch.needs_decompression:
            await run_in_thread(batch.decompress)
    return Fetched(offset, visible.end, chosen, data.high_watermark, data.last_stable_offset, data.log_start_offset)


async def _ask_leader(
    connection: Connection,
    offsets: Mapping[TopicPartition, int],
    limits: Mapping[TopicPartition, int],
    ids: Mapping[str, bytes],
    terms: Terms,
    attempt_timeout: float,
) -> Answers[messages.PartitionData]:
    """Ask one leader once.

    Raises: ConnectionFailed, RequestTimedOut: no response; OffsetOutOfRange: a partition does
    not have its offset.
    """
    max_wait = min(terms.max_wait, attempt_timeout)
    request, version = new_fetch_request(
        connection.versions,
        offsets,
        limits,
        ids,
        max_wait=max_wait,
        max_bytes=sum(limits.values()),
        isolation=terms.isolation,
        min_bytes=terms.min_bytes,
    )
    deadline = Deadline(attempt_timeout + max_wait, f"Fetch v{version} to {connection.who}")
    with anyio.CancelScope(deadline=deadline.at):
        response = await connection.request(request, version=version, timeout=attempt_timeout + max_wait)
        if response.error_code:
            raise error_for(response.error_code, f"Fetch from {connection.who} failed", request="Fetch")
        return _sort(response, offsets, ids, connection.who)
    raise deadline.error()


def _sort(
    response: messages.FetchResponse, asked: Mapping[TopicPartition, int], ids: Mapping[str, bytes], who: str
) -> Answers[messages.PartitionData]:
    answers: Answers[messages.PartitionData] = Answers({}, {}, {})
    names = {topic_id: name for name, topic_id in ids.items()}
    missing = dict(asked)
    for topic in response.responses:
        name = topic.topic or names.get(topic.topic_id, "")
        for data in topic.partitions:
            tp = TopicPartition(name, data.partition_index)
            if missing.pop(tp, None) is None:
                continue
            if data.error_code:
                _sort_error(answers, tp, asked[tp], data.error_code, who)
            else:
                answers.found[tp] = data
    for tp in missing:
        _sort_error(
            answers, tp, asked[tp], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{who}, which left it out of its response"
        )
    return answers


def _sort_error(answers: Answers[messages.PartitionData], tp: TopicPartition, offset: int, code: int, who: str) -> None:
    if code == ErrorCode.OFFSET_OUT_OF_RANGE:
        raise OffsetOutOfRange(
            f"{tp} has no offset {offset} at {who}: see list_offsets for the offsets it has",
            topic=tp.topic,
            partition=tp.partition,
            offset=offset,
        )
    what = f"Fetch of {tp} at offset {offset} from {who}"
    error = error_for(code, what, topic=tp.topic, partition=tp.partition, request="Fetch")
    # a batch that is corrupt on the broker's disk stays corrupt
    again = (error.retriable and code != ErrorCode.CORRUPT_MESSAGE) or error.code is ErrorCode.UNKNOWN_SERVER_ERROR
    (answers.again if again else answers.refused)[tp] = error
