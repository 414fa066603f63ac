"""OffsetCommit and OffsetFetch: plain offsets of a group, without members."""

from __future__ import annotations

import pytest

from aiokwire.broker import Broker
from aiokwire.broker.log import Storage
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import offset_commit, offset_fetch
from tests.broker.raw import RawClient
from tests.broker.transactional import RawProducer, committed_offset, kill


def commit_request(
    topic: str = "t", offset: int = 5, *, group: str = "g", topic_id: bytes = bytes(16), metadata: str = "m"
) -> offset_commit.OffsetCommitRequest:
    one = offset_commit.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata=metadata
    )
    wanted = offset_commit.OffsetCommitRequestTopic(name=topic, topic_id=topic_id, partitions=[one])
    return offset_commit.OffsetCommitRequest(group_id=group, topics=[wanted])


async def commit(client: RawClient, request: offset_commit.OffsetCommitRequest, version: int) -> int:
    return (await client.ask(request, version)).topics[0].partitions[0].error_code


@pytest.mark.parametrize("version", range(11))
async def test_every_version_commits(broker: Broker, client: RawClient, version: int) -> None:
    topic_id = broker.state.topics.require("t").id if version >= 10 else bytes(16)
    request = commit_request("t" if version < 10 else "", 40 + version, topic_id=topic_id)
    assert await commit(client, request, version) == 0
    assert await committed_offset(client, "g", "t") == (0, 40 + version)


@pytest.mark.parametrize("version", range(11))
async def test_every_version_fetches(broker: Broker, client: RawClient, version: int) -> None:
    assert await commit(client, commit_request(), 5) == 0
    topic_id = broker.state.topics.require("t").id if version >= 10 else bytes(16)
    name = "t" if version < 10 else ""
    if version < 8:
        asked = offset_fetch.OffsetFetchRequestTopic(name="t", partition_indexes=[0, 1])
        old = await client.ask(offset_fetch.OffsetFetchRequest(group_id="g", topics=[asked]), version)
        rows = [(one.committed_offset, one.metadata, one.error_code) for one in old.topics[0].partitions]
    else:
        topic = offset_fetch.OffsetFetchRequestTopics(name=name, topic_id=topic_id, partition_indexes=[0, 1])
        groups = [offset_fetch.OffsetFetchRequestGroup(group_id=group, topics=[topic]) for group in ("g", "other")]
        answer = await client.ask(offset_fetch.OffsetFetchRequest(groups=groups), version)
        mine, other = answer.groups
        assert [one.committed_offset for one in other.topics[0].partitions] == [-1, -1]
        assert mine.topics[0].topic_id == topic_id
        rows = [(one.committed_offset, one.metadata, one.error_code) for one in mine.topics[0].partitions]
    assert rows == [(5, "m", 0), (-1, "", 0)]


@pytest.mark.parametrize("version", [2, 7, 8, 9, 10])
async def test_no_list_of_topics_means_all_of_them(broker: Broker, client: RawClient, version: int) -> None:
    await broker.create_topic("u", 1)
    for topic in ("t", "u"):
        assert await commit(client, commit_request(topic), 5) == 0
    if version < 8:
        old = await client.ask(offset_fetch.OffsetFetchRequest(group_id="g", topics=None), version)
        assert [one.name for one in old.topics] == ["t", "u"]
        return
    request = offset_fetch.OffsetFetchRequest(groups=[offset_fetch.OffsetFetchRequestGroup(group_id="g", topics=None)])
    (group,) = (await client.ask(request, version)).groups
    if version < 10:
        assert [one.name for one in group.topics] == ["t", "u"]
    else:
        assert [one.topic_id for one in group.topics] == [broker.state.topics.require(name).id for name in ("t", "u")]


async def test_what_cannot_be_committed_is_refused(client: RawClient) -> None:
    assert await commit(client, commit_request("none"), 5) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await commit(client, commit_request("", topic_id=b"x" * 16), 10) == ErrorCode.UNKNOWN_TOPIC_ID
    assert await commit(client, commit_request(metadata="x" * 4097), 5) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    member = commit_request()
    member.generation_id_or_member_epoch = 3
    assert await commit(client, member, 5) == ErrorCode.ILLEGAL_GENERATION
    asked = offset_fetch.OffsetFetchRequestTopics(topic_id=b"x" * 16, partition_indexes=[0])
    request = offset_fetch.OffsetFetchRequest(
        groups=[offset_fetch.OffsetFetchRequestGroup(group_id="g", topics=[asked])]
    )
    (group,) = (await client.ask(request, 10)).groups
    assert group.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


async def test_offsets_survive_a_kill(storage: Storage) -> None:
    async with Broker(storage=storage, topics={"t": 1}, offsets_topic_num_partitions=2) as broker:
        client = await RawClient.connect(broker)
        for offset in (3, 9):
            assert await commit(client, commit_request(offset=offset), 9) == 0
        await client.close()
        await kill(broker)
    async with Broker(storage=storage) as broker:
        client = await RawClient.connect(broker)
        assert await committed_offset(client, "g", "t") == (0, 9)
        await client.close()


async def test_of_two_commits_the_later_one_counts_and_not_the_one_whose_transaction_ends_later(
    storage: Storage,
) -> None:
    async with Broker(storage=storage, topics={"t": 2}, offsets_topic_num_partitions=1) as broker:
        client = await RawClient.connect(broker)
        first, second = RawProducer(client, "first", newer=True), RawProducer(client, "second", newer=True)
        for producer in (first, second):
            assert await producer.init() == 0
        assert await first.send_offset("g", "t", 3) == 0
        assert await commit(client, commit_request(offset=9), 9) == 0
        assert await first.send_offset("g", "t", 4, partition=1) == 0
        assert await second.send_offset("g", "t", 7, partition=1) == 0
        for producer in (second, first):
            assert await producer.end(commit=True) == 0
        assert await committed_offset(client, "g", "t") == (0, 9)
        assert await committed_offset(client, "g", "t", partition=1) == (0, 7)
        await client.close()
        await kill(broker)
    async with Broker(storage=storage) as broker:
        client = await RawClient.connect(broker)
        assert await committed_offset(client, "g", "t") == (0, 9)
        assert await committed_offset(client, "g", "t", partition=1) == (0, 7)
        await client.close()


async def test_a_group_without_a_name_may_keep_offsets(client: RawClient) -> None:
    assert await commit(client, commit_request(group="", offset=6), 5) == 0
    assert await committed_offset(client, "", "t") == (0, 6)
