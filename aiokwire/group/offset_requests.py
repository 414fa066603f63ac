"""OffsetFetch and OffsetCommit in all their versions, for `offsets.py`. No I/O.

- Before v8 an OffsetFetch is for one group; from v8 on it has a list of groups.
- From v10 on both name topics by their ids alone. If an id is not known, v9 is the newest usable
  version.
- v0 of both stores offsets in ZooKeeper (0.8). An offset that was never committed is an unknown
  partition there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from aiokwire.error_codes import ErrorCode
from aiokwire.group.subscription_format import by_topic
from aiokwire.net import ApiVersions
from aiokwire.protocol import ZERO_UUID
from aiokwire.protocol.messages import offset_commit, offset_fetch
from aiokwire.types import GroupMetadata, OffsetAndMetadata, TopicPartition

_FETCH = offset_fetch.OffsetFetchRequest.FIRST_VERSION_WITH
FIRST_VERSION_WITH_STABLE = _FETCH["require_stable"]
FIRST_VERSION_WITH_GROUPS = _FETCH["groups"]
FIRST_VERSION_WITH_IDS = _FETCH["topic_id"]  # and without names (KIP-516); so has OffsetCommit
FIRST_VERSION_WITH_INSTANCES = offset_commit.OffsetCommitRequest.FIRST_VERSION_WITH["group_instance_id"]

Chooser: TypeAlias = Callable[[ApiVersions], int]
# The id of each requested topic; None if it is not known.
TopicIds: TypeAlias = Mapping[str, bytes | None]


class Answer(NamedTuple):
    """The result for one partition: an error code, or in OffsetFetch the offset."""

    partition: TopicPartition
    code: int
    offset: OffsetAndMetadata | None = None


def newest_version(ids: TopicIds) -> int | None:
    """Return the newest usable version; None: any."""
    return None if all(ids.values()) else FIRST_VERSION_WITH_IDS - 1


def named(topic: str, ids: TopicIds, version: int) -> tuple[str, bytes]:
    """Return the name and id of a topic as a version sends them."""
    return (topic, ZERO_UUID) if version < FIRST_VERSION_WITH_IDS else ("", ids[topic] or ZERO_UUID)


class Question:
    """OffsetFetch. `stable`: the broker refuses offsets that an open transaction may change.

    The fields of the request are set when the version is chosen.
    """

    def __init__(self, group_id: str, partitions: Iterable[TopicPartition], ids: TopicIds, *, stable: bool) -> None:
        self.request: offset_fetch.OffsetFetchRequest = offset_fetch.OffsetFetchRequest()
        self._group_id = group_id
        self._topics = by_topic(partitions)
        self._ids = ids
        self._stable = stable
        self._version = -1

    def version(self, versions: ApiVersions) -> int:
        """Return the newest usable version, and set the fields that it has."""
        self._version = picked = versions.pick(offset_fetch.OffsetFetchRequest, newest_version(self._ids))
        request = self.request
        request.require_stable = self._stable and picked >= FIRST_VERSION_WITH_STABLE
        request.group_id, request.topics, request.groups = "", [], []
        if picked >= FIRST_VERSION_WITH_GROUPS:
            group = offset_fetch.OffsetFetchRequestGroup(group_id=self._group_id)
            for name, numbers in self._topics.items():
                topic = offset_fetch.OffsetFetchRequestTopics(partition_indexes=numbers)
                topic.name, topic.topic_id = named(name, self._ids, picked)
                group.topics = [*(group.topics or ()), topic]
            request.groups = [group]
        else:
            request.group_id = self._group_id
            request.topics = [
                offset_fetch.OffsetFetchRequestTopic(name=name, partition_indexes=numbers)
                for name, numbers in self._topics.items()
            ]
        return picked

    def code_of_group(self, response: offset_fetch.OffsetFetchResponse) -> int:
        """Return the error code of the group as a whole."""
        return response.groups[0].error_code if response.groups else response.error_code

    def answers(self, response: offset_fetch.OffsetFetchResponse) -> Iterator[Answer]:
        """Yield the result for each partition. Its offset is None if none was ever committed."""
        names = {topic_id: name for name, topic_id in self._ids.items()}
        for topic in response.groups[0].topics if response.groups else response.topics:
            name = topic.name
            if isinstance(topic, offset_fetch.OffsetFetchResponseTopics) and not name:
                name = names.get(topic.topic_id, "")
            for data in topic.partitions:
                code, offset = data.error_code, None
                if self._version == 0 and code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    code = 0
                elif not code and data.committed_offset >= 0:
                    offset = OffsetAndMetadata(data.committed_offset, data.metadata or "", data.committed_leader_epoch)
                yield Answer(TopicPartition(name, data.partition_index), code, offset)


def commit_request(
    group: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata], ids: TopicIds
) -> tuple[offset_commit.OffsetCommitRequest, Chooser]:
    """Return OffsetCommit and the chooser of its version, which sets the fields of that version."""
    topics: dict[str, list[offset_commit.OffsetCommitRequestPartition]] = {}
    for (name, partition), offset in offsets.items():
        entry = offset_commit.OffsetCommitRequestPartition(
            partition_index=partition,
            committed_offset=offset.offset,
            committed_leader_epoch=offset.leader_epoch,
            committed_metadata=offset.metadata,
        )
        topics.setdefault(name, []).append(entry)
    request = offset_commit.OffsetCommitRequest(
        group_id=group.group_id, generation_id_or_member_epoch=group.generation, member_id=group.member_id
    )

    def version(versions: ApiVersions) -> int:
        picked = versions.pick(offset_commit.OffsetCommitRequest, newest_version(ids))
        request.group_instance_id = group.group_instance_id if picked >= FIRST_VERSION_WITH_INSTANCES else None
        request.topics = []
        for name, entries in topics.items():
            topic = offset_commit.OffsetCommitRequestTopic(partitions=entries)
            topic.name, topic.topic_id = named(name, ids, picked)
            request.topics.append(topic)
        return picked

    return request, version


def read_commit(response: offset_commit.OffsetCommitResponse, ids: TopicIds) -> Iterator[Answer]:
    """Yield the result for each partition."""
    names = {topic_id: name for name, topic_id in ids.items()}
    for topic in response.topics:
        name = topic.name or names.get(topic.topic_id, "")
        for data in topic.partitions:
            yield Answer(TopicPartition(name, data.partition_index), data.error_code)
