"""ListOffsets, OffsetForLeaderEpoch and InitProducerId."""

from __future__ import annotations

import pytest

from aiokwire.broker import Broker
from aiokwire.broker.log import MemoryStorage
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import init_producer_id, list_offsets
from aiokwire.protocol.messages import offset_for_leader_epoch as epochs
from tests.broker.raw import RawClient, batch, produce_one

TIME = 1_700_000_000_000


async def _ask(
    client: RawClient,
    timestamp: int,
    version: int,
    *,
    topic: str = "t",
    epoch: int = -1,
    most: int = 1,
    isolation_level: int = 0,
) -> list_offsets.ListOffsetsPartitionResponse:
    wanted = list_offsets.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    if version >= 4:
        wanted.current_leader_epoch = epoch
    if version == 0:
        wanted.max_num_offsets = most
    request = list_offsets.ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation_level,
        topics=[list_offsets.ListOffsetsTopic(name=topic, partitions=[wanted])],
    )
    return (await client.ask(request, version)).topics[0].partitions[0]


@pytest.mark.parametrize("version", range(1, 12))
async def test_every_version_returns_start_end_and_times(client: RawClient, version: int) -> None:
    await produce_one(client, "t", batch([b"a", b"b", b"c"], timestamp=TIME))
    epoch = 0 if version >= 4 else -1
    for timestamp, offset, found, known in (
        (-1, 3, -1, epoch),
        (-2, 0, -1, epoch),
        (TIME + 1, 1, TIME + 1, epoch),
        (TIME + 3, -1, -1, -1),
        (0, 0, TIME, epoch),
    ):
        answer = await _ask(client, timestamp, version)
        assert (answer.error_code, answer.offset, answer.timestamp, answer.leader_epoch) == (0, offset, found, known)


async def test_version_0_returns_a_list(client: RawClient) -> None:
    await produce_one(client, "t", batch([b"a", b"b", b"c"], timestamp=TIME))
    assert (await _ask(client, -1, 0, most=5)).old_style_offsets == [3, 0]
    assert (await _ask(client, -1, 0)).old_style_offsets == [3]
    assert (await _ask(client, -2, 0)).old_style_offsets == [0]
    assert (await _ask(client, TIME + 2, 0)).old_style_offsets == [2]


@pytest.mark.parametrize(("timestamp", "since", "offset"), [(-3, 7, 2), (-4, 8, 0), (-5, 9, -1), (-6, 11, -1)])
async def test_special_times_are_known_from_their_version_on(
    client: RawClient, timestamp: int, since: int, offset: int
) -> None:
    await produce_one(client, "t", batch([b"a", b"b", b"c"], timestamp=TIME))
    answer = await _ask(client, timestamp, since)
    assert (answer.error_code, answer.offset) == (0, offset)
    assert (await _ask(client, timestamp, since - 1)).error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_an_empty_partition_has_no_record_at_any_time(client: RawClient) -> None:
    assert (await _ask(client, -1, 7)).offset == 0
    assert (await _ask(client, -3, 7)).offset == -1
    assert (await _ask(client, 0, 7, isolation_level=1)).offset == -1


async def test_unknown_partitions_and_epochs_are_refused(client: RawClient) -> None:
    assert (await _ask(client, -1, 7, topic="none")).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (await _ask(client, -1, 7, epoch=5)).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


@pytest.mark.parametrize("version", range(5))
async def test_the_end_of_an_epoch_is_returned(client: RawClient, version: int) -> None:
    await produce_one(client, "t", batch([b"a", b"b"]))

    async def ask(topic: str, epoch: int, current: int = -1) -> epochs.EpochEndOffset:
        wanted = epochs.OffsetForLeaderPartition(partition=0, leader_epoch=epoch)
        if version >= 2:
            wanted.current_leader_epoch = current
        request = epochs.OffsetForLeaderEpochRequest(
            replica_id=-1 if version >= 3 else -2,
            topics=[epochs.OffsetForLeaderTopic(topic=topic, partitions=[wanted])],
        )
        return (await client.ask(request, version)).topics[0].partitions[0]

    present = await ask("t", 0)
    assert (present.error_code, present.end_offset) == (0, 2)
    assert present.leader_epoch == (0 if version >= 1 else -1)
    future = await ask("t", 7)
    assert (future.error_code, future.end_offset, future.leader_epoch) == (0, -1, -1)
    assert (await ask("none", 0)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if version >= 2:
        assert (await ask("t", 0, 4)).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


@pytest.mark.parametrize("version", range(6))
async def test_each_idempotent_producer_gets_its_own_id(client: RawClient, version: int) -> None:
    request = init_producer_id.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    first, second = await client.ask(request, version), await client.ask(request, version)
    assert (first.error_code, first.producer_epoch) == (0, 0)
    assert second.producer_id == first.producer_id + 1


async def test_no_id_is_given_out_that_could_not_be_written_down() -> None:
    storage = MemoryStorage()
    async with Broker(storage=storage) as broker:
        client = await RawClient.connect(broker)
        storage.capacity = 0
        request = init_producer_id.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        assert (await client.ask(request, 4)).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        storage.capacity = None
        assert (await client.ask(request, 4)).error_code == 0
        await client.close()
