"""A scripted peer for the consumer: a minimal broker with responses that a test can replace.

A test replaces the response to a request by `peer.on[ApiKey.FETCH] = ...` and finds the requests in
`peer.seen`. Most tests use the embedded broker; the peer can send invalid responses.
"""

from __future__ import annotations

import asyncio
import collections
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import anyio
import pytest

from aiokwire.protocol import ApiKey, Request, Response, decode_request, encode_response
from aiokwire.protocol.messages import api_versions, fetch, list_offsets, metadata, offset_for_leader_epoch
from aiokwire.records import BatchBuilder
from aiokwire.types import Compression, TopicPartition

TOPIC_ID = bytes(range(16))
Answerer = Callable[[Request, int], Awaitable[Response | None]]


def batch(
    base: int,
    values: Sequence[bytes | None],
    *,
    compression: Compression = Compression.NONE,
    producer_id: int = -1,
    transactional: bool = False,
    leader_epoch: int = 0,
    keys: Sequence[bytes | None] | None = None,
) -> bytes:
    """Return an encoded batch whose first record has the offset `base`."""
    builder = BatchBuilder(2, 1 << 30)
    for index, value in enumerate(values):
        builder.append(1000 + base + index, None if keys is None else keys[index], value)
    return bytes(
        builder.seal(
            compression=compression,
            base_offset=base,
            leader_epoch=leader_epoch,
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=0 if producer_id >= 0 else -1,
            transactional=transactional,
        )
    )


def marker(base: int, producer_id: int, *, commit: bool) -> bytes:
    """Return a control batch that ends a transaction."""
    builder = BatchBuilder(2, 1 << 20)
    builder.append(1000 + base, b"\0\0\0\1" if commit else b"\0\0\0\0", b"\0\0\0\0\0\0")
    return bytes(
        builder.seal(
            control=True,
            transactional=True,
            producer_id=producer_id,
            producer_epoch=0,
            base_offset=base,
            leader_epoch=0,
        )
    )


class Log:
    """A partition: encoded batches, and the metadata that the peer reports about them."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, int, bytes]] = []  # first offset, offset after, bytes
        self.start = 0
        self.end = 0
        self.last_stable = -1  # -1: the end
        self.aborted: list[tuple[int, int]] = []
        self.error = 0
        self.leader = 0
        self.leader_epoch = 0
        self.preferred = -1  # the replica that the leader names to a consumer with a rack
        self.follower_start = 0
        self.follower_error = 0
        self.follower_records: bytes | None = None  # in place of the log's

    def append(self, *values: bytes | None, **how: object) -> None:
        self.add(batch(self.end, values, **how), len(values))  # type: ignore[arg-type]  # passed on as they are

    def add(self, data: bytes, offsets: int) -> None:
        self.batches.append((self.end, self.end + offsets, data))
        self.end += offsets

    def read(self, offset: int, limit: int, *, whole_first: bool) -> bytes:
        found = b""
        for _, after, data in self.batches:
            if after <= offset:
                continue
            if found and len(found) + len(data) > limit:
                break
            found += data
        return found if whole_first else found[:limit]


class Peer:
    """A process that acts as the brokers 0 to `nodes` - 1, each on its own port."""

    def __init__(self, nodes: int = 1, newest: dict[int, int] | None = None) -> None:
        self.nodes = nodes
        self.newest = {ApiKey.FETCH: 12, ApiKey.LIST_OFFSETS: 7, ApiKey.METADATA: 12} | (newest or {})
        self.logs: dict[TopicPartition, Log] = collections.defaultdict(Log)
        self.topic_ids: dict[str, bytes] = {}
        self.on: dict[int, Answerer] = {}
        self.seen: list[Request] = []
        self.changed = asyncio.Event()
        self.ports: list[int] = []
        self.down: set[int] = set()
        self._writers: list[tuple[int, asyncio.StreamWriter]] = []

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports)

    def log(self, topic: str, partition: int = 0) -> Log:
        return self.logs[TopicPartition(topic, partition)]

    def asked(self, kind: type[Request]) -> list[Request]:
        return [request for request in self.seen if isinstance(request, kind)]

    def wake_fetches(self) -> None:
        """Let waiting fetches check the logs again after a change."""
        self.changed.set()
        self.changed = asyncio.Event()

    def hang_up(self, node: int = 0) -> None:
        for owner, writer in self._writers:
            if owner == node:
                writer.transport.abort()

    async def serve(self, node: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append((node, writer))
        try:
            while node not in self.down:
                size = int.from_bytes(await reader.readexactly(4), "big")
                header, request = decode_request(await reader.readexactly(size))
                self.seen.append(request)
                response = await self.answer(node, request, header.api_version)
                if response is None:
                    break
                writer.write(b"".join(encode_response(response, header.api_version, header.correlation_id)))
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def answer(self, node: int, request: Request, version: int) -> Response | None:
        scripted = self.on.get(request.API)
        if scripted is not None:
            return await scripted(request, version)
        if isinstance(request, api_versions.ApiVersionsRequest):
            return self.versions()
        if isinstance(request, metadata.MetadataRequest):
            return self.describe(request)
        if isinstance(request, list_offsets.ListOffsetsRequest):
            return self.offsets(request, version)
        if isinstance(request, fetch.FetchRequest):
            return await self.long_poll(node, request, version)
        assert isinstance(request, offset_for_leader_epoch.OffsetForLeaderEpochRequest)
        return self.epochs(request)

    def versions(self) -> api_versions.ApiVersionsResponse:
        kinds = [
            ApiKey.API_VERSIONS,
            ApiKey.METADATA,
            ApiKey.LIST_OFFSETS,
            ApiKey.FETCH,
            ApiKey.OFFSET_FOR_LEADER_EPOCH,
        ]
        offered = [
            api_versions.ApiVersion(api_key=int(kind), min_version=0, max_version=self.newest.get(kind, 3))
            for kind in kinds
        ]
        return api_versions.ApiVersionsResponse(api_keys=offered)

    def describe(self, request: metadata.MetadataRequest) -> metadata.MetadataResponse:
        names = {tp.topic for tp in self.logs}
        if request.topics is not None:
            names = {topic.name or "" for topic in request.topics}
        topics = []
        for name in sorted(names):
            logs = {tp.partition: log for tp, log in self.logs.items() if tp.topic == name}
            partitions = [
                metadata.MetadataResponsePartition(
                    error_code=0 if log.leader >= 0 else 5,
                    partition_index=number,
                    leader_id=log.leader,
                    leader_epoch=log.leader_epoch,
                    replica_nodes=[0],
                    isr_nodes=[0],
                )
                for number, log in sorted(logs.items())
            ]
            topics.append(
                metadata.MetadataResponseTopic(
                    error_code=0 if logs else 3,
                    name=name,
                    topic_id=self.topic_ids.get(name, TOPIC_ID),
                    partitions=partitions,
                )
            )
        brokers = [
            metadata.MetadataResponseBroker(node_id=node, host="127.0.0.1", port=port)
            for node, port in enumerate(self.ports)
        ]
        return metadata.MetadataResponse(brokers=brokers, cluster_id="scripted", controller_id=0, topics=topics)

    def offsets(self, request: list_offsets.ListOffsetsRequest, version: int) -> list_offsets.ListOffsetsResponse:
        topics = []
        for topic in request.topics:
            partitions = []
            for asked in topic.partitions:
                log = self.log(topic.name, asked.partition_index)
                if version == 0:
                    partitions.append(
                        list_offsets.ListOffsetsPartitionResponse(
                            partition_index=asked.partition_index,
                            old_style_offsets=[log.end if asked.timestamp == -1 else log.start],
                        )
                    )
                    continue
                found = {-1: log.end, -2: log.start}.get(asked.timestamp, asked.timestamp - 1000)
                partitions.append(
                    list_offsets.ListOffsetsPartitionResponse(
                        partition_index=asked.partition_index,
                        offset=found if found <= log.end else -1,
                        timestamp=-1 if asked.timestamp < 0 else asked.timestamp,
                        leader_epoch=log.leader_epoch if version >= 4 else -1,
                    )
                )
            topics.append(list_offsets.ListOffsetsTopicResponse(name=topic.name, partitions=partitions))
        return list_offsets.ListOffsetsResponse(topics=topics)

    def epochs(
        self, request: offset_for_leader_epoch.OffsetForLeaderEpochRequest
    ) -> offset_for_leader_epoch.OffsetForLeaderEpochResponse:
        topics = [
            offset_for_leader_epoch.OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    offset_for_leader_epoch.EpochEndOffset(
                        partition=asked.partition,
                        leader_epoch=asked.leader_epoch,
                        end_offset=self.log(topic.topic, asked.partition).end,
                    )
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return offset_for_leader_epoch.OffsetForLeaderEpochResponse(topics=topics)

    async def long_poll(self, node: int, request: fetch.FetchRequest, version: int) -> fetch.FetchResponse:
        """Hold a fetch until there is data or its wait ends, as a broker does."""
        with anyio.move_on_after(request.max_wait_ms / 1000):
            while True:
                changed = self.changed
                response = self.fetch_now(node, request, version)
                if any(
                    d.records or d.error_code or d.preferred_read_replica >= 0
                    for topic in response.responses
                    for d in topic.partitions
                ):
                    return response
                await changed.wait()
        return self.fetch_now(node, request, version)

    def fetch_now(self, node: int, request: fetch.FetchRequest, version: int) -> fetch.FetchResponse:
        room = request.max_bytes if version >= 3 else 1 << 30
        empty = True
        topics = []
        for topic in request.topics:
            partitions = []
            for asked in topic.partitions:
                name = topic.topic or next(name for name in {tp.topic for tp in self.logs})
                log = self.log(name, asked.partition)
                if node == log.preferred != log.leader:
                    data = self.follow(log, asked, room)
                else:
                    data = self.read(node, log, asked, room, version, whole_first=version >= 3 and empty)
                if request.rack_id and node == log.leader and log.preferred >= 0 and not data.error_code:
                    data.records, data.preferred_read_replica = b"", log.preferred
                room -= len(data.records or b"")
                empty = empty and not data.records
                partitions.append(data)
            topics.append(
                fetch.FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=partitions)
            )
        return fetch.FetchResponse(responses=topics)

    def follow(self, log: Log, asked: fetch.FetchPartition, room: int) -> fetch.PartitionData:
        """Return a follower's part of a response."""
        error = log.follower_error or (1 if asked.fetch_offset < log.follower_start else 0)
        records = log.read(asked.fetch_offset, room, whole_first=True) if not error else b""
        return fetch.PartitionData(
            partition_index=asked.partition,
            error_code=error,
            high_watermark=log.end,
            last_stable_offset=log.end,
            log_start_offset=log.follower_start,
            aborted_transactions=[],
            records=records if log.follower_records is None else log.follower_records,
        )

    def read(
        self, node: int, log: Log, asked: fetch.FetchPartition, room: int, version: int, *, whole_first: bool
    ) -> fetch.PartitionData:
        error = log.error
        if not error and log.leader != node:
            error = 6
        if not error and -1 < asked.current_leader_epoch != log.leader_epoch:
            error = 74 if asked.current_leader_epoch < log.leader_epoch else 75
        if not error and not log.start <= asked.fetch_offset <= log.end:
            error = 1
        stable = log.end if log.last_stable < 0 else log.last_stable
        data = b""
        if not error and (room > 0 or whole_first):
            limit = min(room, asked.partition_max_bytes)
            data = log.read(asked.fetch_offset, limit, whole_first=whole_first)
            if len(data) > limit and not whole_first:
                data = data[:limit]
            if version >= 3 and len(data) < int.from_bytes(data[8:12], "big") + 12:
                data = b""  # as in Kafka: from version 3 on an incomplete first batch is left out
        return fetch.PartitionData(
            partition_index=asked.partition,
            error_code=error,
            high_watermark=log.end,
            last_stable_offset=stable,
            log_start_offset=log.start,
            aborted_transactions=[
                fetch.AbortedTransaction(producer_id=producer, first_offset=first) for producer, first in log.aborted
            ],
            records=data,
        )


@pytest.fixture
def make_peer() -> Callable[..., object]:
    """Return a factory: `async with make_peer(nodes=2) as peer`."""

    @asynccontextmanager
    async def make(nodes: int = 1, newest: dict[int, int] | None = None) -> AsyncIterator[Peer]:
        peer = Peer(nodes, newest)
        tasks: set[asyncio.Task[None]] = set()
        servers = []
        for node in range(nodes):

            async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, node: int = node) -> None:
                task = asyncio.current_task()
                assert task is not None
                tasks.add(task)
                try:
                    await peer.serve(node, reader, writer)
                finally:
                    tasks.discard(task)

            server = await asyncio.start_server(serve, "127.0.0.1", 0)
            servers.append(server)
            peer.ports.append(server.sockets[0].getsockname()[1])
        try:
            yield peer
        finally:
            for server in servers:
                server.close()
            for node in range(nodes):
                peer.hang_up(node)
            for task in list(tasks):
                task.cancel()
            for _ in range(3):
                await anyio.lowlevel.checkpoint()

    return make
