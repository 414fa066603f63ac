"""A scripted cluster for the producer: loopback nodes that store records and respond as scripted.

Other tests use the embedded broker; these nodes also return what no correct broker returns.
"""

from __future__ import annotations

import asyncio
import collections
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.abc
import pytest

from aiokwire.async_library import start_soon
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol import ApiKey, RequestHeader, Response, decode_request, encode_response
from aiokwire.protocol.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    api_versions,
    end_txn,
    find_coordinator,
    init_producer_id,
    metadata,
    produce,
    txn_offset_commit,
)
from aiokwire.records import read_batches
from aiokwire.types import TopicPartition
from tests.ports import ReservedPort

TOPIC_ID = bytes(range(16))
MODERN = {
    ApiKey.PRODUCE: (0, 13),
    ApiKey.API_VERSIONS: (0, 4),
    ApiKey.METADATA: (0, 13),
    ApiKey.INIT_PRODUCER_ID: (0, 5),
}

# The further APIs of a node with transactions.
TRANSACTIONAL = {
    ApiKey.FIND_COORDINATOR: (0, 6),
    ApiKey.ADD_PARTITIONS_TO_TXN: (0, 5),
    ApiKey.ADD_OFFSETS_TO_TXN: (0, 4),
    ApiKey.TXN_OFFSET_COMMIT: (0, 5),
    ApiKey.END_TXN: (0, 5),
}

Answer = produce.PartitionProduceResponse
# A test's response to one partition's data: a response, a code, or None to append it.
PartitionScript = Callable[[TopicPartition, bytes], Answer | int | None]
# The action of a test on a whole request before it is handled: False hangs up, None handles it.
RequestScript = Callable[[produce.ProduceRequest], Awaitable[bool | None]]


@dataclasses.dataclass
class Log:
    """The values of one partition, and the sequence of the last producer."""

    values: list[bytes | None] = dataclasses.field(default_factory=list)
    producer_id: int = -1
    epoch: int = -1
    next_sequence: int = 0


class Node:
    """One listener."""

    def __init__(self, cluster: ScriptedCluster, node_id: int) -> None:
        self.cluster = cluster
        self.node_id = node_id
        self._reserved = ReservedPort()
        self.port = self._reserved.number
        self.ranges = dict(MODERN)
        self.features: dict[str, int] = {}
        self.requests: list[tuple[RequestHeader, produce.ProduceRequest]] = []
        self.on_partition: PartitionScript = lambda tp, data: None
        self.on_request: RequestScript = _handle_as_usual
        self.throttle_time_ms = 0
        self.mute = False  # it handles requests, but its responses are lost
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]  # where a test chose port 0, to move the node

    def close(self) -> None:
        """Stop, without another start."""
        self.stop()
        self._reserved.release()

    def stop(self) -> None:
        """Stop listening and reset every connection; `start` listens on the same port again."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._writers):
            writer.transport.abort()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        start_soon(self.cluster.group, self._serve, reader, writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                header, request = decode_request(await reader.readexactly(size))
                answer = await self._answer(header, request)
                if answer is None:
                    if header.api_key == ApiKey.PRODUCE and request.acks == 0:  # type: ignore[attr-defined]  # a ProduceRequest
                        continue
                    break
                version = 0 if header.api_key == ApiKey.API_VERSIONS and header.api_version > 4 else header.api_version
                if not self.mute:
                    writer.write(b"".join(encode_response(answer, version, header.correlation_id)))
        except (asyncio.IncompleteReadError, OSError):
            pass  # the client hung up
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    async def _answer(self, header: RequestHeader, request: object) -> Response | None:
        if isinstance(request, produce.ProduceRequest):
            self.requests.append((header, request))
            if await self.on_request(request) is False:
                return None
            answer = self._produce(request)
            return answer if request.acks else None
        if isinstance(request, metadata.MetadataRequest):
            return self.cluster.metadata(request)
        if header.api_key in TRANSACTIONAL or getattr(request, "transactional_id", None) is not None:
            return self.cluster.coordinator.answer(self, header, request)
        if isinstance(request, init_producer_id.InitProducerIdRequest):
            self.cluster.ids_asked += 1
            if self.cluster.no_ids:
                return init_producer_id.InitProducerIdResponse(producer_id=-1, producer_epoch=-1)
            self.cluster.ids_given += 1
            return init_producer_id.InitProducerIdResponse(producer_id=4000 + self.cluster.ids_given, producer_epoch=0)
        return api_versions.ApiVersionsResponse(
            api_keys=[
                api_versions.ApiVersion(api_key=key, min_version=low, max_version=high)
                for key, (low, high) in self.ranges.items()
            ],
            finalized_features_epoch=1,
            finalized_features=[
                api_versions.FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
                for name, level in self.features.items()
            ],
        )

    def _produce(self, request: produce.ProduceRequest) -> produce.ProduceResponse:
        answers = []
        for topic in request.topic_data:
            name = topic.name or "t"
            parts = [
                self._append(TopicPartition(name, part.index), bytes(part.records or b""))
                for part in topic.partition_data
            ]
            answers.append(
                produce.TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=parts)
            )
        return produce.ProduceResponse(responses=answers, throttle_time_ms=self.throttle_time_ms)

    def _append(self, tp: TopicPartition, data: bytes) -> Answer:
        scripted = self.on_partition(tp, data)
        if isinstance(scripted, int):
            return Answer(index=tp.partition, error_code=scripted, base_offset=-1)
        if scripted is not None:
            scripted.index = tp.partition
            return scripted
        if self.cluster.leaders[tp.topic][tp.partition] != self.node_id:
            return Answer(index=tp.partition, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, base_offset=-1)
        return self.cluster.append(tp, data)


class ScriptedCoordinator:
    """Responses for transactions: the next code of an API's list, else success.

    `journal` has the requests, with versions; `silent` is the set of APIs without a response,
    `node_id` its node.
    """

    def __init__(self) -> None:
        self.node_id = 1
        self.codes: dict[ApiKey, list[int]] = collections.defaultdict(list)
        self.silent: set[ApiKey] = set()
        self.journal: list[tuple[ApiKey, int, Any]] = []
        self.producer_id = 70
        self.epoch = -1

    @property
    def apis(self) -> list[ApiKey]:
        """The APIs of the requests, in order, without lookups of coordinators."""
        return [api for api, _, _ in self.journal if api is not ApiKey.FIND_COORDINATOR]

    def of(self, api: ApiKey) -> list[Any]:
        """The requests of one API."""
        return [request for asked, _, request in self.journal if asked is api]

    def answer(self, node: Node, header: RequestHeader, request: Any) -> Response | None:
        api = ApiKey(header.api_key)
        self.journal.append((api, header.api_version, request))
        if api in self.silent:
            return None
        code = self.codes[api].pop(0) if self.codes[api] else 0
        if isinstance(request, find_coordinator.FindCoordinatorRequest):
            return self._found(node, header, request, code)
        if node.node_id != self.node_id:
            code = ErrorCode.NOT_COORDINATOR
        if isinstance(request, init_producer_id.InitProducerIdRequest):
            if not code:
                self.epoch += 1
            return init_producer_id.InitProducerIdResponse(
                error_code=code, producer_id=-1 if code else self.producer_id, producer_epoch=self.epoch
            )
        if isinstance(request, add_offsets_to_txn.AddOffsetsToTxnRequest):
            return add_offsets_to_txn.AddOffsetsToTxnResponse(error_code=code)
        if isinstance(request, end_txn.EndTxnRequest):
            return self._end(header, code)
        return _by_partition(request, code)

    def _found(self, node: Node, header: RequestHeader, request: Any, code: int) -> Response:
        port = node.cluster.nodes[self.node_id].port
        if header.api_version < 4:
            return find_coordinator.FindCoordinatorResponse(
                error_code=code, node_id=self.node_id, host="127.0.0.1", port=port
            )
        return find_coordinator.FindCoordinatorResponse(
            coordinators=[
                find_coordinator.Coordinator(
                    key=key, node_id=self.node_id, host="127.0.0.1", port=port, error_code=code
                )
                for key in request.coordinator_keys
            ]
        )

    def _end(self, header: RequestHeader, code: int) -> Response:
        if code or header.api_version < 5:
            return end_txn.EndTxnResponse(error_code=code)
        self.epoch += 1
        return end_txn.EndTxnResponse(producer_id=self.producer_id, producer_epoch=self.epoch)


def _by_partition(request: Any, code: int) -> Response:
    if isinstance(request, txn_offset_commit.TxnOffsetCommitRequest):
        return txn_offset_commit.TxnOffsetCommitResponse(
            topics=[
                txn_offset_commit.TxnOffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        txn_offset_commit.TxnOffsetCommitResponsePartition(
                            partition_index=part.partition_index, error_code=code
                        )
                        for part in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )
    return add_partitions_to_txn.AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[
            add_partitions_to_txn.AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    add_partitions_to_txn.AddPartitionsToTxnPartitionResult(
                        partition_index=index, partition_error_code=code
                    )
                    for index in topic.partitions
                ],
            )
            for topic in request.v3_and_below_topics
        ]
    )


class ScriptedCluster:
    """Some nodes with the same leaders of partitions."""

    def __init__(self, group: anyio.abc.TaskGroup, nodes: int) -> None:
        self.group = group
        self.nodes = {node_id: Node(self, node_id) for node_id in range(1, nodes + 1)}
        self.leaders: dict[str, list[int]] = {"t": [1]}
        self.topic_errors: dict[str, int] = {}
        self.logs: dict[TopicPartition, Log] = collections.defaultdict(Log)
        self.coordinator = ScriptedCoordinator()
        self.ids_given = 0
        self.ids_asked = 0
        self.no_ids = False  # no error, and no producer id either
        self.metadata_asked = 0

    @property
    def node(self) -> Node:
        """The first node."""
        return self.nodes[1]

    def allow_transactions(self, *, transaction_v2: bool) -> None:
        """Its nodes run the first or the second protocol of transactions."""
        for node in self.nodes.values():
            node.ranges |= TRANSACTIONAL
            node.features = {"transaction.version": 2 if transaction_v2 else 1}

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.node.port}"

    def values(self, partition: int = 0) -> list[bytes | None]:
        """The values in a partition of topic t."""
        return self.logs[TopicPartition("t", partition)].values

    def append(self, tp: TopicPartition, data: bytes) -> Answer:
        """Append as a broker does: check sequences, recognize a duplicate."""
        log = self.logs[tp]
        base = len(log.values)
        for batch in read_batches(data, tp.topic, tp.partition):
            if batch.producer_id >= 0:
                if batch.producer_id != log.producer_id or batch.producer_epoch > log.epoch:
                    # as brokers do: it accepts any sequence of a producer that it does not know
                    first = batch.base_sequence if log.producer_id != batch.producer_id else 0
                    log.producer_id, log.epoch, log.next_sequence = batch.producer_id, batch.producer_epoch, first
                if batch.base_sequence < log.next_sequence:
                    return Answer(index=tp.partition, error_code=ErrorCode.DUPLICATE_SEQUENCE_NUMBER, base_offset=-1)
                if batch.base_sequence > log.next_sequence:
                    return Answer(index=tp.partition, error_code=ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, base_offset=-1)
                log.next_sequence += batch.count
            log.values += batch.values()
        return Answer(index=tp.partition, base_offset=base)

    def metadata(self, request: metadata.MetadataRequest) -> metadata.MetadataResponse:
        self.metadata_asked += 1
        asked = [topic.name for topic in request.topics or []]
        topics = []
        for name in asked:
            assert name is not None
            leaders = self.leaders.get(name)
            code = self.topic_errors.get(name, 0 if leaders else int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            partitions = [
                metadata.MetadataResponsePartition(partition_index=index, leader_id=leader, leader_epoch=1)
                for index, leader in enumerate(leaders or [])
            ]
            topics.append(
                metadata.MetadataResponseTopic(
                    name=name,
                    topic_id=TOPIC_ID if leaders else bytes(16),
                    error_code=code,
                    partitions=[] if code else partitions,
                )
            )
        brokers = [
            metadata.MetadataResponseBroker(node_id=node.node_id, host="127.0.0.1", port=node.port)
            for node in self.nodes.values()
        ]
        return metadata.MetadataResponse(brokers=brokers, controller_id=1, cluster_id="scripted", topics=topics)


async def _handle_as_usual(request: produce.ProduceRequest) -> None:
    return None


@asynccontextmanager
async def scripted_cluster(nodes: int = 1) -> AsyncIterator[ScriptedCluster]:
    """A cluster of nodes that listen; topic t has one partition, led by node 1."""
    async with anyio.create_task_group() as group:
        cluster = ScriptedCluster(group, nodes)
        try:
            for node in cluster.nodes.values():
                await node.start()
            yield cluster
        finally:
            for node in cluster.nodes.values():
                node.close()
            group.cancel_scope.cancel()


class Script:
    """Responses for one partition's data, in turn; after the last one it appends."""

    def __init__(self, *answers: Answer | int | None) -> None:
        self._answers: Iterator[Answer | int | None] = iter(answers)
        self.data: list[bytes] = []

    def __call__(self, tp: TopicPartition, data: bytes) -> Answer | int | None:
        self.data.append(data)
        return next(self._answers, None)


@pytest.fixture
def quick() -> dict[str, Any]:
    """Options that make retries quick."""
    return {"retry_backoff_ms": 2, "retry_backoff_max_ms": 10, "metadata_min_interval_ms": 1, "reconnect_backoff_ms": 2}
