"""Scripted cluster: real listeners on loopback that respond as scripted, by `aiokwire.protocol`."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeAlias

import anyio
import anyio.abc
import pytest

from aiokwire.async_library import start_soon
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol import ZERO_UUID, ApiKey, Request, RequestHeader, Response, decode_request, encode_response
from aiokwire.protocol.messages import api_versions, find_coordinator, metadata
from tests.consumer.conftest import make_peer
from tests.ports import ReservedPort

__all__ = ["clusters", "free_port", "make_peer"]

Handler = Callable[[RequestHeader, Any], Response | None]
MetadataTopic: TypeAlias = metadata.MetadataResponseTopic
RANGES: dict[int, tuple[int, int]] = {
    ApiKey.API_VERSIONS: (0, 4),
    ApiKey.METADATA: (0, 13),
    ApiKey.FIND_COORDINATOR: (0, 6),
}


@dataclasses.dataclass
class ScriptedTopic:
    leaders: list[int]
    epochs: list[int] | None = None
    topic_id: bytes = ZERO_UUID
    error_code: int = 0


class ScriptedNode:
    """One listener. `handlers` by api key replace the usual responses; None hangs up."""

    def __init__(self, cluster: ScriptedCluster, node_id: int) -> None:
        self.cluster = cluster
        self.node_id = node_id
        self._reserved = ReservedPort()
        self.port = self._reserved.number
        self.accepted = 0
        self.asked: list[tuple[RequestHeader, Request]] = []
        self.handlers: dict[int, Handler] = {}
        self.silent: set[int] = set()  # api keys that get no response
        self.ranges: dict[int, tuple[int, int]] = dict(RANGES)
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
        self.drop()

    def drop(self) -> None:
        """Reset every connection."""
        for writer in list(self._writers):
            writer.transport.abort()

    @property
    def open(self) -> int:
        """Connections open now."""
        return len(self._writers)

    def count(self, api_key: int) -> int:
        return sum(1 for header, _ in self.asked if header.api_key == api_key)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        self._writers.add(writer)
        start_soon(self.cluster.group, self._serve, reader, writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                header, request = decode_request(await reader.readexactly(size))
                self.asked.append((header, request))
                self.cluster.asked.set()
                self.cluster.asked = anyio.Event()
                if header.api_key in self.silent:
                    continue
                answer = self._answer(header, request)
                if answer is None:
                    return
                writer.write(b"".join(encode_response(answer, header.api_version, header.correlation_id)))
                await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    def _answer(self, header: RequestHeader, request: Any) -> Response | None:
        if header.api_key in self.handlers:
            return self.handlers[header.api_key](header, request)
        if header.api_key == ApiKey.API_VERSIONS:
            keys = [
                api_versions.ApiVersion(api_key=key, min_version=low, max_version=high)
                for key, (low, high) in self.ranges.items()
            ]
            return api_versions.ApiVersionsResponse(api_keys=keys)
        if header.api_key == ApiKey.METADATA:
            return self.cluster.metadata(request, header.api_version)
        if header.api_key == ApiKey.FIND_COORDINATOR:
            return self.cluster.find_coordinator(request, header.api_version)
        return None


class ScriptedCluster:
    """Nodes 1, 2, ... and the metadata that they return."""

    def __init__(self, nodes: int, group: anyio.abc.TaskGroup) -> None:
        self.group = group
        self.nodes = [ScriptedNode(self, node_id) for node_id in range(1, nodes + 1)]
        self.topics: dict[str, ScriptedTopic] = {}
        self.controller = 1
        self.coordinator = 1
        self.throttle_ms = 0
        self.advertised: dict[int, tuple[str, int]] = {}  # other addresses than the real ones, by node
        self.asked = anyio.Event()  # set, and replaced, with each request

    @property
    def bootstrap(self) -> list[str]:
        return [f"127.0.0.1:{node.port}" for node in self.nodes]

    def count(self, api_key: int) -> int:
        return sum(node.count(api_key) for node in self.nodes)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until requests have made something true."""
        while not condition():
            await self.asked.wait()

    def topic(self, name: str, leaders: list[int], **options: Any) -> None:
        """Create a topic, or change it."""
        self.topics[name] = ScriptedTopic(leaders, **options)

    def address(self, node: ScriptedNode) -> tuple[str, int]:
        return self.advertised.get(node.node_id, ("127.0.0.1", node.port))

    def metadata(self, request: metadata.MetadataRequest, version: int) -> metadata.MetadataResponse:
        everything = request.topics is None or (version == 0 and not request.topics)
        named = [topic.name or "" for topic in request.topics or ()]
        brokers = []
        for node in self.nodes:
            host, port = self.address(node)
            brokers.append(metadata.MetadataResponseBroker(node_id=node.node_id, host=host, port=port))
        answer = metadata.MetadataResponse(
            brokers=brokers,
            topics=[self._topic(name, version) for name in (self.topics if everything else named)],
        )
        if version >= 1:
            answer.controller_id = self.controller
        if version >= 3:
            answer.throttle_time_ms = self.throttle_ms
        return answer

    def _topic(self, name: str, version: int) -> MetadataTopic:
        topic = self.topics.get(name)
        if topic is None or topic.error_code:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic is None else topic.error_code
            return metadata.MetadataResponseTopic(error_code=code, name=name)
        partitions = [
            metadata.MetadataResponsePartition(
                partition_index=index,
                leader_id=leader,
                leader_epoch=topic.epochs[index] if topic.epochs and version >= 7 else -1,
                replica_nodes=[leader],
                isr_nodes=[leader],
            )
            for index, leader in enumerate(topic.leaders)
        ]
        found = metadata.MetadataResponseTopic(name=name, partitions=partitions)
        if version >= 10:
            found.topic_id = topic.topic_id
        return found

    def find_coordinator(
        self, request: find_coordinator.FindCoordinatorRequest, version: int
    ) -> find_coordinator.FindCoordinatorResponse:
        host, port = self.address(self.nodes[self.coordinator - 1])
        if version < 4:
            return find_coordinator.FindCoordinatorResponse(node_id=self.coordinator, host=host, port=port)
        return find_coordinator.FindCoordinatorResponse(
            coordinators=[
                find_coordinator.Coordinator(key=key, node_id=self.coordinator, host=host, port=port)
                for key in request.coordinator_keys
            ]
        )


Clusters = Callable[..., AbstractAsyncContextManager[ScriptedCluster]]


@asynccontextmanager
async def _cluster(nodes: int = 1) -> AsyncIterator[ScriptedCluster]:
    failure: BaseException | None = None
    async with anyio.create_task_group() as group:
        cluster = ScriptedCluster(nodes, group)
        for node in cluster.nodes:
            await node.start()
        try:
            yield cluster
        except Exception as error:  # raised outside of the task group, which would wrap it
            failure = error
        finally:
            for node in cluster.nodes:
                node.close()
            group.cancel_scope.cancel()
    if failure is not None:
        raise failure


@pytest.fixture
def clusters() -> Clusters:
    """Makes a scripted cluster: `async with clusters(3) as cluster`."""
    return _cluster


@pytest.fixture
def free_port() -> Iterator[int]:
    """A port without a listener."""
    with ReservedPort() as port:
        yield port.number
