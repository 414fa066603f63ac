"""A transactional producer of bare requests, older (AddPartitionsToTxn) or newer (KIP-890)."""

from __future__ import annotations

from aiokwire.broker import Broker
from aiokwire.protocol.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    end_txn,
    fetch,
    init_producer_id,
    offset_fetch,
    txn_offset_commit,
)
from aiokwire.records import read_batches
from tests.broker.raw import RawClient, batch, fetch_request, produce_request


class RawProducer:
    """Knows its id and epoch and counts its sequence numbers; requests return their error code."""

    def __init__(self, client: RawClient, transactional_id: str = "tx", *, newer: bool = False) -> None:
        self.client = client
        self.transactional_id = transactional_id
        self.newer = newer
        self.producer_id = -1
        self.epoch = -1
        self.sequences: dict[tuple[str, int], int] = {}

    async def init(self, *, timeout_ms: int = 60_000, keep: bool = False, version: int = 4) -> int:
        request = init_producer_id.InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=self.producer_id if keep else -1,
            producer_epoch=self.epoch if keep else -1,
        )
        answer = await self.client.ask(request, version)
        if not answer.error_code:
            self._become(answer.producer_id, answer.producer_epoch)
        return answer.error_code

    def _become(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self.sequences.clear()
        self.producer_id, self.epoch = producer_id, epoch

    async def add(self, topic: str, *partitions: int, version: int = 3) -> list[int]:
        request = add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[
                add_partitions_to_txn.AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))
            ],
        )
        answer = await self.client.ask(request, version)
        return [
            one.partition_error_code
            for result in answer.results_by_topic_v3_and_below
            for one in result.results_by_partition
        ]

    async def write(self, topic: str, *values: bytes, partition: int = 0, version: int | None = None) -> int:
        """Produce only; an older producer must have added the partition."""
        at = (topic, partition)
        records = batch(
            values,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self.sequences.get(at, 0),
            transactional=True,
        )
        request = produce_request(topic, records, partition=partition)
        request.transactional_id = self.transactional_id
        answer = await self.client.ask(request, (12 if self.newer else 9) if version is None else version)
        code = answer.responses[0].partition_responses[0].error_code
        if not code:
            self.sequences[at] = self.sequences.get(at, 0) + len(values)
        return code

    async def send(self, topic: str, *values: bytes, partition: int = 0) -> None:
        """Produce as the kind of client that it is, which must succeed."""
        if not self.newer:
            assert await self.add(topic, partition) == [0]
        assert await self.write(topic, *values, partition=partition) == 0

    async def send_offset(self, group: str, topic: str, offset: int, *, partition: int = 0) -> int:
        if not self.newer:
            request = add_offsets_to_txn.AddOffsetsToTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                group_id=group,
            )
            code = (await self.client.ask(request, 3)).error_code
            if code:
                return code
        return await self.commit_offset(group, topic, offset, partition=partition, version=5 if self.newer else 3)

    async def commit_offset(
        self, group: str, topic: str, offset: int, *, partition: int = 0, version: int = 3, generation: int = -1
    ) -> int:
        """TxnOffsetCommit only."""
        request = txn_offset_commit.TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            generation_id=generation,
            topics=[
                txn_offset_commit.TxnOffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        txn_offset_commit.TxnOffsetCommitRequestPartition(
                            partition_index=partition, committed_offset=offset, committed_metadata="m"
                        )
                    ],
                )
            ],
        )
        return (await self.client.ask(request, version)).topics[0].partitions[0].error_code

    async def end(self, *, commit: bool, version: int | None = None) -> int:
        request = end_txn.EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        answer = await self.client.ask(request, (5 if self.newer else 3) if version is None else version)
        if not answer.error_code and answer.producer_id >= 0:
            self._become(answer.producer_id, answer.producer_epoch)
        return answer.error_code


async def read(client: RawClient, topic: str, *, partition: int = 0, committed: bool = True) -> list[bytes | None]:
    """The values that a reader gets, aborted ones left out as clients do it."""
    offset = 0
    found: list[bytes | None] = []
    while True:
        request = fetch_request(topic, offset, partition=partition, isolation_level=int(committed))
        data = (await client.ask(request, 12)).responses[0].partitions[0]
        if not data.records:
            return found
        values, offset = visible(data, offset)
        found += values


def visible(data: fetch.PartitionData, offset: int = 0) -> tuple[list[bytes | None], int]:
    """Return the values of a fetch without aborted transactions, and the next offset."""
    waiting = sorted((one.first_offset, one.producer_id) for one in data.aborted_transactions or ())
    aborted: set[int] = set()
    found: list[bytes | None] = []
    for one in read_batches(data.records, "t", 0):
        while waiting and waiting[0][0] <= one.last_offset:
            aborted.add(waiting.pop(0)[1])
        if one.is_control:
            aborted.discard(one.producer_id)
        elif not (one.is_transactional and one.producer_id in aborted):
            found += one.values(offset)
        offset = one.next_offset
    return found, offset


async def committed_offset(
    client: RawClient, group: str, topic: str, *, partition: int = 0, stable: bool = False
) -> tuple[int, int]:
    """Error code and offset of a group."""
    request = offset_fetch.OffsetFetchRequest(
        group_id=group,
        topics=[offset_fetch.OffsetFetchRequestTopic(name=topic, partition_indexes=[partition])],
        require_stable=stable,
    )
    one = (await client.ask(request, 7)).topics[0].partitions[0]
    return one.error_code, one.committed_offset


async def kill(broker: Broker) -> None:
    """End a broker as a killed process would: nothing is flushed, no mark of a clean stop."""
    broker.state.logs.abandon()
    await broker.close()


def open_transactions(broker: Broker) -> dict[str, int]:
    """What delays read_committed readers: how far each partition's last stable offset is behind."""
    return {
        f"{topic.name}-{partition.index}": partition.log.end_offset - partition.log.last_stable_offset
        for topic in broker.state.topics
        for partition in topic.partitions
        if partition.log.end_offset != partition.log.last_stable_offset
    }
