"""A broker that attacks its clients, in its own process.

Started as `python -m integration.attacks.hostile KIND`, it prints its port and serves until its
standard input is closed. Each kind responds to one API as no correct broker does.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import anyio
import anyio.to_thread

from aiokwire.protocol import ApiKey, Request, Response, decode_request, encode_request, encode_response, request_type
from aiokwire.protocol.messages import (
    api_versions,
    fetch,
    init_producer_id,
    list_offsets,
    metadata,
)
from aiokwire.records import compress, crc32c
from aiokwire.types import Compression

RECORDS = 10_500_000
_SERVED = {
    ApiKey.PRODUCE: 9,
    ApiKey.FETCH: 11,
    ApiKey.LIST_OFFSETS: 5,
    ApiKey.METADATA: 9,
    ApiKey.API_VERSIONS: 3,
    ApiKey.INIT_PRODUCER_ID: 4,
    ApiKey.DESCRIBE_CLUSTER: 0,
}
_FORGED = "\x1b[31mred\r\nFAKE LOG LINE\0"
Answers = dict[ApiKey, Callable[[Any], Response | bytes]]


def _versions(_: Request) -> Response:
    keys = [api_versions.ApiVersion(api_key=key, min_version=0, max_version=last) for key, last in _SERVED.items()]
    return api_versions.ApiVersionsResponse(api_keys=keys)


def _metadata(port: int, **changes: Any) -> Callable[[Any], Response]:
    broker = metadata.MetadataResponseBroker(node_id=1, host=changes.pop("host", "127.0.0.1"), port=port)
    partition = metadata.MetadataResponsePartition(leader_id=1, replica_nodes=[1], isr_nodes=[1])
    topic = metadata.MetadataResponseTopic(name="t", partitions=[partition])
    return lambda _: metadata.MetadataResponse(
        **{"brokers": [broker], "controller_id": 1, "topics": [topic], **changes}
    )


def _tiny_batch() -> bytes:
    """Return 10.5 million records in 6 kB."""
    payload = compress(Compression.ZSTD, bytes((12, 0, 0, 0, 1, 1, 0)) * RECORDS)
    body = struct.pack(">hiqqqhii", 4, RECORDS - 1, 1000, 1000, -1, -1, -1, RECORDS) + payload
    return struct.pack(">qiibI", 0, len(body) + 9, 0, 2, crc32c(body)) + body


def _fetched(batch: bytes) -> Callable[[Any], Response]:
    def answer(request: fetch.FetchRequest) -> Response:
        asked = [one.partitions[0] for one in request.topics]
        first = not asked or asked[0].fetch_offset == 0
        data = fetch.PartitionData(high_watermark=RECORDS, log_start_offset=0, records=batch if first else b"")
        return fetch.FetchResponse(responses=[fetch.FetchableTopicResponse(topic="t", partitions=[data])])

    return answer


def _offsets(_: Request) -> Response:
    partition = list_offsets.ListOffsetsPartitionResponse(partition_index=0, offset=0, timestamp=-1)
    return list_offsets.ListOffsetsResponse(
        topics=[list_offsets.ListOffsetsTopicResponse(name="t", partitions=[partition])]
    )


def _names(count: int) -> list[metadata.MetadataResponseTopic]:
    return [metadata.MetadataResponseTopic(name=f"t{number}") for number in range(count)]


def _brokers(count: int, port: int) -> list[metadata.MetadataResponseBroker]:
    return [metadata.MetadataResponseBroker(node_id=each, host="127.0.0.1", port=port) for each in range(count)]


def _answers(kind: str, port: int) -> Answers:
    """Return the response to each API."""
    answers: Answers = {
        ApiKey.API_VERSIONS: _versions,
        ApiKey.METADATA: _metadata(port),
        ApiKey.LIST_OFFSETS: _offsets,
    }
    if kind == "topics":
        answers[ApiKey.METADATA] = _metadata(port, topics=_names(1_500_000))
    elif kind == "many-topics":
        answers[ApiKey.METADATA] = _metadata(port, topics=_names(900_000))
    elif kind == "brokers":
        answers[ApiKey.METADATA] = _metadata(port, brokers=_brokers(200_000, port))
    elif kind == "many-brokers":
        answers[ApiKey.METADATA] = _metadata(port, brokers=_brokers(10_000, port))
    elif kind == "records":
        answers[ApiKey.FETCH] = _fetched(_tiny_batch())
    elif kind == "names":
        answers[ApiKey.METADATA] = _metadata(port, host=_FORGED)
    elif kind == "producer-id":
        answers[ApiKey.INIT_PRODUCER_ID] = lambda _: init_producer_id.InitProducerIdResponse(
            producer_id=-1, producer_epoch=-1
        )
    elif kind == "throttle":
        answers[ApiKey.METADATA] = _metadata(port, throttle_time_ms=2**31 - 1)
    elif kind == "versions":
        answers[ApiKey.API_VERSIONS] = lambda _: b"\0\0" + b"\xf1\xff\xff\x0f" + bytes(33 << 20)
    elif kind == "hang-up":
        answers.pop(ApiKey.METADATA)
    return answers


class _Answerer:
    """Responds to requests; a large response is encoded once."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._encoded: dict[tuple[int, int], bytes] = {}
        self.asked = 0

    def encode_ahead(self) -> None:
        """Encode the Metadata response, which may take seconds, before a client waits for it."""
        if ApiKey.METADATA in self._answers:
            version = _SERVED[ApiKey.METADATA]
            frame = b"".join(encode_request(metadata.MetadataRequest(topics=None), version, 0, None))
            self._answer(frame[4:])

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        with contextlib.suppress(OSError, EOFError):
            while True:
                frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
                self.asked += 1
                if int.from_bytes(frame[:2], "big") not in self._answers:
                    break
                writer.write(self._answer(frame))
                await writer.drain()
        writer.transport.abort()

    def _answer(self, frame: bytes) -> bytes:
        key, version = struct.unpack(">hh", frame[:4])
        number = frame[4:8]
        body = self._encoded.get((key, version))
        if body is None or key == ApiKey.FETCH:
            _, request = decode_request(frame, trailing=True)
            response = self._answers[ApiKey(key)](request)
            if isinstance(response, bytes):
                body = response
            else:
                body = b"".join(encode_response(response, min(version, _SERVED[ApiKey(key)]), 1))[8:]
            self._encoded[key, version] = body
        return (len(body) + 4).to_bytes(4, "big") + number + body


async def _serve(kind: str) -> None:
    answers: Answers = {}
    answerer = _Answerer(answers)
    server = await asyncio.start_server(answerer.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    for key in _SERVED:
        request_type(key)
    answers.update(_answers(kind, port))
    answerer.encode_ahead()
    print(port, flush=True)
    await anyio.to_thread.run_sync(sys.stdin.read)
    print(answerer.asked, flush=True)
    server.close()


class Hostile:
    """The process, from the client's side."""

    def __init__(self, kind: str) -> None:
        command = [sys.executable, "-m", "integration.attacks.hostile", kind]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.address = f"127.0.0.1:{int(self.process.stdout.readline())}"

    def asked(self) -> int:
        """End the process; return the number of requests."""
        return int(self.process.communicate(timeout=30)[0])


@contextmanager
def hostile_broker(kind: str) -> Any:
    """Start a hostile broker; end it at the end."""
    broker = Hostile(kind)
    try:
        yield broker
    finally:
        if broker.process.poll() is None:
            broker.process.kill()
            broker.process.communicate()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1]))
