"""The fetch request, and the verdict on each partition of its response: one table, no I/O."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from aiokwire.consumer.fetch_plan import Asked, FetchPlan
from aiokwire.consumer.fetch_session import Turn
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, error_for
from aiokwire.protocol import ZERO_UUID
from aiokwire.protocol.messages import fetch
from aiokwire.types import IsolationLevel, TopicPartition


class Verdict(enum.Enum):
    """The handling of a partition in a fetch response."""

    RECORDS = enum.auto()  # take the records, if any
    MOVED = enum.auto()  # refresh the metadata, then retry
    RETRY = enum.auto()  # retry after the backoff
    OUT_OF_RANGE = enum.auto()  # the log does not contain the position: the reset policy decides
    DENIED = enum.auto()  # no permission; the reader raises it
    CORRUPT = enum.auto()  # the broker cannot read its own log there; the reader raises it
    REFUSED = enum.auto()  # any other error that a retry does not fix; the reader raises it


# Only codes whose meaning differs from their flags in `error_codes`. No transient error may cause a reset.
_VERDICTS: Final = {
    ErrorCode.NONE: Verdict.RECORDS,
    ErrorCode.OFFSET_OUT_OF_RANGE: Verdict.OUT_OF_RANGE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: Verdict.MOVED,
    ErrorCode.LEADER_NOT_AVAILABLE: Verdict.MOVED,
    ErrorCode.REPLICA_NOT_AVAILABLE: Verdict.MOVED,
    ErrorCode.KAFKA_STORAGE_ERROR: Verdict.MOVED,
    ErrorCode.FENCED_LEADER_EPOCH: Verdict.MOVED,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Verdict.MOVED,
    ErrorCode.UNKNOWN_TOPIC_ID: Verdict.MOVED,
    ErrorCode.INCONSISTENT_TOPIC_ID: Verdict.MOVED,
    ErrorCode.UNKNOWN_LEADER_EPOCH: Verdict.RETRY,  # the broker's metadata is older than ours
    ErrorCode.OFFSET_NOT_AVAILABLE: Verdict.RETRY,  # a new leader whose high watermark is behind
    ErrorCode.UNKNOWN_SERVER_ERROR: Verdict.RETRY,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: Verdict.DENIED,
    ErrorCode.CORRUPT_MESSAGE: Verdict.CORRUPT,
}


def verdict_for(code: int) -> Verdict:
    """Return what an error code means for its partition."""
    known = ErrorCode.of(code)
    verdict = _VERDICTS.get(known)
    if verdict is not None:
        return verdict
    if known.refresh_metadata:
        return Verdict.MOVED
    return Verdict.RETRY if known.retriable else Verdict.REFUSED


class Answer(NamedTuple):
    """One partition of a response."""

    asked: Asked
    verdict: Verdict
    data: fetch.PartitionData


def fetch_request(
    plan: FetchPlan, turn: Turn, isolation: IsolationLevel, ids: Mapping[str, bytes], rack: str = ""
) -> fetch.FetchRequest:
    """Build the request of a plan's turn, for every version; `ids` are known ids of its topics."""
    topics: dict[str, fetch.FetchTopic] = {}
    for asked in turn.named:
        topic, partition = asked.state.tp
        entry = topics.get(topic)
        if entry is None:
            entry = fetch.FetchTopic(topic=topic, topic_id=ids.get(topic, ZERO_UUID))
            topics[topic] = entry
        entry.partitions.append(
            fetch.FetchPartition(
                partition=partition,
                current_leader_epoch=asked.leader_epoch,
                fetch_offset=asked.offset,
                partition_max_bytes=asked.limit,
            )
        )
    return fetch.FetchRequest(
        max_wait_ms=plan.max_wait_ms,
        min_bytes=plan.min_bytes,
        max_bytes=plan.max_bytes,
        isolation_level=int(isolation),
        session_id=turn.session_id,
        session_epoch=turn.epoch,
        topics=list(topics.values()),
        forgotten_topics_data=[_forgotten(topic, partitions) for topic, partitions in turn.forgotten.items()],
        rack_id=rack,
    )


def _forgotten(topic: str | bytes, partitions: Sequence[int]) -> fetch.ForgottenTopic:
    if isinstance(topic, str):
        return fetch.ForgottenTopic(topic=topic, partitions=list(partitions))
    return fetch.ForgottenTopic(topic_id=topic, partitions=list(partitions))


def read_response(response: fetch.FetchResponse, plan: FetchPlan, ids: Mapping[str, bytes]) -> Iterator[Answer]:
    """Yield a response's partitions, without those not requested, and without repetitions."""
    open_ = {asked.state.tp: asked for asked in plan.asked}
    names = {topic_id: name for name, topic_id in ids.items()}
    for topic in response.responses:
        name = topic.topic or names.get(topic.topic_id, "")
        for data in topic.partitions:
            asked = open_.pop(TopicPartition(name, data.partition_index), None)
            if asked is not None:
                yield Answer(asked, verdict_for(data.error_code), data)


def error_of(answer: Answer, broker: str) -> BrokerError:
    """Return the error of a partition that cannot be read."""
    topic, partition = answer.asked.state.tp
    return error_for(
        answer.data.error_code,
        f"Fetch of {answer.asked.state.tp} at offset {answer.asked.offset} from {broker}",
        topic=topic,
        partition=partition,
        request="Fetch",
    )
