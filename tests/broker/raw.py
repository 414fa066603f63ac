"""A client that exchanges raw frames, and the requests that tests of the broker send."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Sequence
from typing import Self, TypeVar, cast

import anyio

from aiokwire.broker import Broker
from aiokwire.protocol import Request, Response, decode_response, encode_request
from aiokwire.protocol.messages import fetch, produce, sasl_authenticate, sasl_handshake
from aiokwire.records import BatchBuilder, read_batches
from aiokwire.security import SaslClient
from aiokwire.types import Compression

R = TypeVar("R", bound=Response)
PATIENCE = 10.0  # seconds until a missing response fails the test


class RawClient:
    """One connection that sends requests and reads responses, in order."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._sent = 0

    @classmethod
    async def connect(
        cls, broker: Broker, node: int | None = None, *, listener: str = "", tls: ssl.SSLContext | None = None
    ) -> Self:
        port = broker.port if node is None else int(broker.address(node).rpartition(":")[2])
        if listener:
            port = int(broker.address_of(listener).rpartition(":")[2])
        name = "localhost" if tls is not None else None
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 26, ssl=tls, server_hostname=name)
        return cls(reader, writer)

    def send(self, request: Request, version: int) -> None:
        """Write a request without waiting for its response."""
        self._sent += 1
        self.writer.writelines(encode_request(request, version, self._sent, "raw"))

    async def receive(self, kind: type[R], version: int, correlation_id: int | None = None) -> R:
        """Read the next response."""
        with anyio.fail_after(PATIENCE):
            size = int.from_bytes(await self.reader.readexactly(4), "big")
            frame = await self.reader.readexactly(size)
        expected = self._sent if correlation_id is None else correlation_id
        assert int.from_bytes(frame[:4], "big") == expected, "answers come in the order of the requests"
        return decode_response(frame, kind, version)

    async def ask(self, request: Request[R], version: int) -> R:
        """Send a request and read its response."""
        self.send(request, version)
        return await self.receive(cast("type[R]", type(request).RESPONSE), version)

    async def closed_by_broker(self) -> bool:
        """Whether the broker closes the connection without a response."""
        with anyio.fail_after(PATIENCE):
            try:
                return await self.reader.read(1) == b""
            except ConnectionError:
                return True  # bytes that the broker did not read cause a reset

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(ConnectionError):
            await self.writer.wait_closed()


def batch(
    values: Sequence[bytes | None],
    *,
    keys: Sequence[bytes | None] | None = None,
    timestamp: int = 1_700_000_000_000,
    magic: int = 2,
    compression: Compression = Compression.NONE,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
) -> bytes:
    """A sealed batch."""
    builder = BatchBuilder(magic, 1 << 24)
    for index, value in enumerate(values):
        builder.append(timestamp + index, keys[index] if keys is not None else None, value, ())
    sealed = builder.seal(
        compression=compression,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=transactional,
        control=control,
    )
    return bytes(sealed)


def produce_request(
    topic: str, records: bytes | None, *, partition: int = 0, acks: int = -1, topic_id: bytes = bytes(16)
) -> produce.ProduceRequest:
    """A Produce request for one partition."""
    return produce.ProduceRequest(
        acks=acks,
        timeout_ms=10_000,
        topic_data=[
            produce.TopicProduceData(
                name=topic,
                topic_id=topic_id,
                partition_data=[produce.PartitionProduceData(index=partition, records=records)],
            )
        ],
    )


async def produce_one(
    client: RawClient, topic: str, records: bytes | None, *, partition: int = 0, version: int = 9, acks: int = -1
) -> produce.PartitionProduceResponse:
    """Produce to one partition and return its part of the response."""
    response = await client.ask(produce_request(topic, records, partition=partition, acks=acks), version)
    return response.responses[0].partition_responses[0]


def fetch_request(
    topic: str,
    offset: int = 0,
    *,
    partition: int = 0,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 25,
    partition_max_bytes: int = 1 << 25,
    isolation_level: int = 0,
    topic_id: bytes = bytes(16),
) -> fetch.FetchRequest:
    """A Fetch request for one partition."""
    return fetch.FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        topics=[
            fetch.FetchTopic(
                topic=topic,
                topic_id=topic_id,
                partitions=[
                    fetch.FetchPartition(
                        partition=partition, fetch_offset=offset, partition_max_bytes=partition_max_bytes
                    )
                ],
            )
        ],
    )


def values_of(data: fetch.PartitionData) -> list[bytes | None]:
    """The values of the records in one partition's response."""
    return [value for one in read_batches(data.records, "t", 0) for value in one.values()]


# --- logins -----------------------------------------------------------------------------------------------------------


async def shake_hands(client: RawClient, mechanism: str, version: int = 1) -> sasl_handshake.SaslHandshakeResponse:
    """Begin a SASL exchange."""
    return await client.ask(sasl_handshake.SaslHandshakeRequest(mechanism=mechanism), version)


async def log_in(client: RawClient, sasl: SaslClient, version: int = 2) -> sasl_authenticate.SaslAuthenticateResponse:
    """Run a whole exchange; return the last response, which may be an error."""
    answer = sasl_authenticate.SaslAuthenticateResponse()
    assert (await shake_hands(client, sasl.mechanism)).error_code == 0
    challenge, asked = b"", False
    while not sasl.is_complete:
        token = await sasl.evaluate_challenge(challenge)
        if sasl.is_complete and asked:
            break  # the broker's last message was checked
        answer = await client.ask(sasl_authenticate.SaslAuthenticateRequest(auth_bytes=token), version)
        if answer.error_code:
            break
        challenge, asked = answer.auth_bytes, True
    return answer
