"""Attacks by requests on a broker process, while another client asks for metadata."""

from __future__ import annotations

import asyncio
import contextlib
import re
import struct
import zlib

import anyio

from aiokwire import Admin
from aiokwire.admin import NewTopic
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol import ApiKey, encode_request
from aiokwire.protocol.messages import (
    api_versions,
    consumer_group_heartbeat,
    init_producer_id,
    list_offsets,
    list_transactions,
    metadata,
)
from aiokwire.records import compress, crc32c
from aiokwire.types import Compression
from integration.attacks.figures import MIB, Figure, Meter, faults
from integration.attacks.target import Attack, Target
from tests.broker.raw import RawClient, produce_one, produce_request

PATTERN = "(a+)+$"
UNPRINTABLE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")
BOMB = 262 * 1_000_000  # bytes, decompressed
PER_ADDRESS = 30  # connections that the broker of V16 allows


async def regular_expressions(target: Target) -> list[Figure]:
    """V1, V1c: a pattern that backtracks for hours, on a topic and on a transactional id."""
    name = "a" * 248 + "-"
    async with Admin(**target.broker.client_options) as admin:
        (await admin.create_topics([NewTopic(name, 1)])).check()
    async with target.connected() as (client,):
        beat = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
            group_id="g", member_id="m", rebalance_timeout_ms=1000, subscribed_topic_regex=PATTERN, topic_partitions=[]
        )
        ask = init_producer_id.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=1000)
        await client.ask(ask, 4)
        target.meter = Meter(target.broker.pid)
        answer = await client.ask(beat, 1)
        found = await client.ask(list_transactions.ListTransactionsRequest(transactional_id_pattern=PATTERN), 2)
    refused = [code for code in (answer.error_code, found.error_code) if code]
    return [target.meter.cpu(0.1), faults("errors", len(refused)), *target.victim.waits()]


async def nested_patterns(target: Target) -> list[Figure]:
    """V1d: 20 patterns of 10,000 nested parentheses."""
    async with target.connected() as (client,):
        codes = []
        for number in range(20):
            beat = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
                group_id=f"g{number}", member_id="m", subscribed_topic_regex="(" * 10_000, topic_partitions=[]
            )
            beat.rebalance_timeout_ms = 1000
            codes.append((await client.ask(beat, 1)).error_code)
    others = [code for code in codes if code != ErrorCode.INVALID_REGULAR_EXPRESSION]
    log = Figure("log", len(target.log) / 1000, 10, " kB")
    return [target.meter.cpu(1.0), faults("other answers", len(others)), log, *target.victim.waits()]


async def _flood(client: RawClient, until: float) -> None:
    request = b"".join(encode_request(metadata.MetadataRequest(topics=None), 1, 1, None)) * 400
    with contextlib.suppress(OSError, RuntimeError):
        while anyio.current_time() < until:
            client.writer.write(request)
            async with asyncio.timeout(max(until - anyio.current_time(), 0.01)):
                await client.writer.drain()
                await client.reader.read(1 << 20)


async def pipelines(target: Target) -> list[Figure]:
    """V2: 50 connections that pipeline Metadata requests for 5 s; another one that arrives late."""
    until = anyio.current_time() + 5
    async with target.connected(50) as clients, anyio.create_task_group() as tasks:
        for client in clients:
            tasks.start_soon(_flood_quietly, client, until)
        await anyio.sleep(1)
        async with target.connected() as (late,):
            began = anyio.current_time()
            await late.ask(api_versions.ApiVersionsRequest(), 0)
            first = anyio.current_time() - began
    arrived = Figure("newcomer", first * 1000, 1000, " ms")
    return [arrived, target.meter.peak(300), *target.victim.waits()]


async def _flood_quietly(client: RawClient, until: float) -> None:
    with contextlib.suppress(TimeoutError):
        await _flood(client, until)


def _tiny_elements(api: ApiKey, count: int) -> bytes:
    """Return a frame of an array of empty strings: Metadata v8, or DescribeGroups v0."""
    version = 8 if api == ApiKey.METADATA else 0
    head = struct.pack(">hhih", api, version, 1, -1) + struct.pack(">i", count)
    body = head + bytes(2 * count) + bytes(3)
    return len(body).to_bytes(4, "big") + body


async def tiny_elements(target: Target) -> list[Figure]:
    """V3: arrays of millions of empty strings, the last one as large as a request may be."""
    for api, count in (
        (ApiKey.METADATA, 2_000_000),
        (ApiKey.DESCRIBE_GROUPS, 2_000_000),
        (ApiKey.METADATA, 52_000_000),
    ):
        async with target.connected() as (client,):
            client.writer.write(_tiny_elements(api, count))
            await client.closed_by_broker()
    return [target.meter.cpu(0.5), target.meter.peak(100 + 20), *target.victim.waits()]


def _old_bomb() -> bytes:
    """Return a gzip message of format 1 around 262 messages of 1 MB."""
    inner = b""
    for offset in range(BOMB // 1_000_000):
        body = struct.pack(">bbqii", 1, 0, 0, -1, 1_000_000) + bytes(1_000_000)
        inner += struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body
    packed = compress(Compression.GZIP, inner)
    body = struct.pack(">bbqii", 1, 1, 0, -1, len(packed)) + packed
    return struct.pack(">qiI", 0, len(body) + 4, zlib.crc32(body)) + body


def sealed(content: bytes, count: int, codec: Compression) -> bytes:
    """Return a batch of format 2 whose header and checksum fit, whatever the records are."""
    payload = compress(codec, content) if codec else content
    body = struct.pack(">hiqqqhii", int(codec), count - 1, 1000, 1000, -1, -1, -1, count) + payload
    return struct.pack(">qiibI", 0, len(body) + 9, -1, 2, crc32c(body)) + body


async def _is_asked_by_time(client: RawClient) -> None:
    partition = list_offsets.ListOffsetsPartition(partition_index=0, timestamp=5000)
    topic = list_offsets.ListOffsetsTopic(name="t", partitions=[partition])
    for _ in range(3):
        await client.ask(list_offsets.ListOffsetsRequest(replica_id=-1, topics=[topic]), 5)


async def old_bomb(target: Target) -> list[Figure]:
    """V4: a gzip message of the old format that decompresses to 262 MB."""
    return await _explode(target, [(await anyio.to_thread.run_sync(_old_bomb), 2)])


async def bombs(target: Target) -> list[Figure]:
    """V5: batches that decompress to 262 MB, then lookups by time."""
    codecs = (Compression.ZSTD, Compression.LZ4, Compression.GZIP)
    return await _explode(target, [(sealed(bytes(BOMB), 1, codec), 9) for codec in codecs])


async def _explode(target: Target, bombs: list[tuple[bytes, int]]) -> list[Figure]:
    """Produce bombs, each with its version of Produce.

    At most 64 MiB of a batch are decompressed; while its buffer grows, the allocator may hold half
    as much again. The smallest bomb has 8 kB.
    """
    async with target.connected() as (client,):
        await client.ask(metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name="t")]), 4)
        target.meter = Meter(target.broker.pid)
        codes, peaks = [], []
        for bomb, version in bombs:
            meter = Meter(target.broker.pid)
            codes.append((await produce_one(client, "t", bomb, version=version)).error_code)
            peaks.append(meter.peak(70 if len(bomb) < 10_000 else 100))
        await _is_asked_by_time(client)
    return [faults("taken", codes.count(0)), target.meter.cpu(3.0), *peaks, *target.victim.waits()]


async def poison(target: Target) -> list[Figure]:
    """V6: a batch of garbage with a valid checksum, then valid lookups by time."""
    async with target.connected() as (client,):
        await client.ask(metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name="t")]), 4)
        codecs = (Compression.NONE, Compression.ZSTD)
        codes = [(await produce_one(client, "t", sealed(b"nonsense" * 9, 3, codec))).error_code for codec in codecs]
        await _is_asked_by_time(client)
    return [faults("taken", codes.count(0)), *target.victim.waits()]


async def unfinished_frames(target: Target) -> list[Figure]:
    """V8: 20 requests of 100 MiB of which the last byte is missing, and 2,000 that only begin."""
    size = 100 * MIB - 100

    async def send(client: RawClient) -> None:
        with contextlib.suppress(OSError, TimeoutError, RuntimeError):
            async with asyncio.timeout(5):
                client.writer.write(size.to_bytes(4, "big") + bytes(8))
                for _ in range(99):
                    client.writer.write(bytes(MIB))
                    await client.writer.drain()

    async with target.connected(20) as clients, anyio.create_task_group() as tasks:
        for client in clients:
            tasks.start_soon(send, client)
    figures = [target.meter.peak(256 + 100 + 50)]
    async with target.connected(400) as clients:
        for client in clients:
            client.writer.write(size.to_bytes(4, "big") + bytes(24_000))
        await anyio.sleep(2)
        figures.append(target.meter.virtual(600))
    return [*figures, *target.victim.waits()]


async def log_lines(target: Target) -> list[Figure]:
    """V9: names with control characters."""
    forged = "\x1b[31mred\r\nFAKE LOG LINE\0"
    for number in range(10):  # acks=0: an error closes the connection
        async with target.connected() as (client,):
            client.send(produce_request(f"{forged}{number}", b"", acks=0), 8)
            await client.closed_by_broker()
    wrong = len(UNPRINTABLE.findall(target.log)) + target.log.count("\nFAKE")
    return [faults("control characters", wrong), *target.victim.waits()]


async def limits(target: Target) -> list[Figure]:
    """V16: 60 connections where the broker allows 30 per address, then 350 requests that are none.

    `queued.max.request.bytes` bounds the peak of V8, `connections.max.reauth.ms` is V16b.
    """
    async with target.connected(60) as clients:
        served = 0
        for client in clients:
            with contextlib.suppress(OSError, EOFError):
                await client.ask(api_versions.ApiVersionsRequest(), 0)
                served += 1
    for _ in range(350):
        async with target.connected() as (client,):
            client.writer.write(struct.pack(">ihhi", 8, 999, 999, 1))
            await client.closed_by_broker()
    size = Figure("log", len(target.log) / 1000, 10, " kB")
    return [Figure("connections", served, PER_ADDRESS), faults("none served", not served), size, *target.victim.waits()]


ATTACKS: dict[str, Attack] = {
    "V1": regular_expressions,
    "V1d": nested_patterns,
    "V2": pipelines,
    "V3": tiny_elements,
    "V4": old_bomb,
    "V5": bombs,
    "V6": poison,
    "V8": unfinished_frames,
    "V9": log_lines,
    "V16": limits,
}
