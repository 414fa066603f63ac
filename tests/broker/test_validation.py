"""Produced records are validated: corrupt batches and bombs are rejected, others are unaffected."""

from __future__ import annotations

import struct
import tracemalloc

import anyio
import pytest

from aiokwire.broker import Broker
from aiokwire.broker.log import PartitionLog
from aiokwire.broker.validation import MOST_DECOMPRESSED, Heavy, check_batches, check_usual, weigh
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError
from aiokwire.protocol.messages import list_offsets, produce
from aiokwire.records import compress, crc32c, scan_batches
from aiokwire.types import Compression
from tests.broker.raw import RawClient, batch, fetch_request, produce_one, produce_request, values_of

NOW = 1_700_000_000_000
MIB = 1 << 20
RECORD = b"\x0c\x00\x00\x00\x01\x01\x00"  # no key, no value, no headers, the first of its batch


def sealed(payload: bytes, count: int, *, codec: int = 0, max_timestamp: int = NOW, delta: int | None = None) -> bytes:
    """A batch whose header and CRC fit, whatever its records are."""
    body = struct.pack(
        ">hiqqqhii", codec, count - 1 if delta is None else delta, NOW, max_timestamp, -1, -1, -1, count
    ) + (compress(codec, payload) if codec else payload)
    head = struct.pack(">qiib", 0, len(body) + 9, -1, 2)
    return head + struct.pack(">I", crc32c(body)) + body


async def _produce(client: RawClient, data: bytes) -> ErrorCode:
    return ErrorCode.of((await produce_one(client, "t", data)).error_code)


@pytest.mark.parametrize("codec", list(Compression))
async def test_invalid_records_fail_at_their_producer(client: RawClient, codec: int) -> None:
    for payload, count in (
        (b"nonsense" * 20, 3),
        (RECORD, 2),  # fewer than the header counts
        (RECORD * 2, 1),  # more
        (RECORD * 2, 2),  # two with one offset
        (RECORD + b"\x00", 1),
    ):
        assert await _produce(client, sealed(payload, count, codec=codec)) is ErrorCode.INVALID_RECORD
    assert await _produce(client, sealed(RECORD, 1, codec=codec)) is ErrorCode.NONE
    data = (await client.ask(fetch_request("t"), 12)).responses[0].partitions[0]
    assert values_of(data) == [None]


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.LZ4, Compression.ZSTD])
async def test_corrupt_compressed_data_fails_at_its_producer(client: RawClient, codec: int) -> None:
    good = sealed(RECORD, 1, codec=codec)
    corrupt = bytearray(good[:-4])
    struct.pack_into(">i", corrupt, 8, len(corrupt) - 12)
    struct.pack_into(">I", corrupt, 17, crc32c(bytes(corrupt[21:])))
    assert await _produce(client, bytes(corrupt)) is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.LZ4, Compression.ZSTD])
async def test_a_bomb_is_refused_in_bounded_memory(client: RawClient, codec: int) -> None:
    payload = bytes(100 * MIB)
    bomb = sealed(payload, 1, codec=codec)
    del payload
    assert len(bomb) < MIB
    tracemalloc.start()
    try:
        assert await _produce(client, bomb) is ErrorCode.MESSAGE_TOO_LARGE
        assert tracemalloc.get_traced_memory()[1] < 2.3 * MOST_DECOMPRESSED
    finally:
        tracemalloc.stop()


async def test_the_loop_runs_while_a_large_batch_is_checked(broker: Broker, client: RawClient) -> None:
    values = [b"%d" % number * 200 for number in range(10_000)]
    data = batch(values, compression=Compression.GZIP)
    other = await RawClient.connect(broker)
    async with anyio.create_task_group() as tasks:
        codes: list[ErrorCode] = []

        async def produce() -> None:
            codes.append(await _produce(client, data))

        tasks.start_soon(produce)
        answered = 0
        while not codes:
            await other.ask(fetch_request("t", partition=1), 12)
            answered += 1
    assert codes == [ErrorCode.NONE]
    assert answered > 1
    found = (await client.ask(fetch_request("t"), 12)).responses[0].partitions[0]
    assert values_of(found) == values
    await other.close()


async def test_the_greatest_timestamp_is_that_of_the_records_and_not_the_headers(client: RawClient) -> None:
    assert await _produce(client, sealed(RECORD, 1, max_timestamp=NOW + 99_999)) is ErrorCode.NONE
    assert await _produce(client, sealed(RECORD, 1, max_timestamp=5, codec=Compression.ZSTD)) is ErrorCode.NONE
    found = (await client.ask(fetch_request("t"), 12)).responses[0].partitions[0]
    stored = scan_batches(found.records, check_crcs=True)
    assert [one.max_timestamp for one in stored] == [NOW, NOW]


def test_what_the_loop_checks_is_bounded() -> None:
    small = batch([b"a"], compression=Compression.ZSTD)
    assert weigh([small]) > 0
    assert weigh([small] * 33) == 0
    assert weigh([b"x" * 16 + b"\x02" + bytes(4) + b"\x00\x04" + bytes(300 << 10)]) == 0
    assert weigh([sealed(RECORD, 200_001)]) == 0
    assert weigh([batch([b"x" * 40_000], magic=1)]) == 0
    assert weigh([None, b"", b"short"]) > 0


async def test_small_batches_that_decompress_to_much_are_left_to_a_thread(broker: Broker) -> None:
    rules = broker.state.topics.require("t").rules
    data = batch([b"x" * (4 * MIB)], compression=Compression.ZSTD)
    quick = weigh([data])
    assert quick > 0
    with pytest.raises(Heavy):
        check_batches(data, 9, rules, NOW, quick)
    assert check_batches(data, 9, rules, NOW).headers[0].count == 1
    with pytest.raises(BrokerError, match="not contiguous"):
        check_batches(sealed(RECORD * 2, 2), 9, rules, NOW, quick)


@pytest.mark.parametrize(
    ("first", "code"),
    [
        (sealed(RECORD, 1), ErrorCode.NONE),
        (sealed(RECORD, 1, codec=Compression.LZ4), ErrorCode.NONE),
        (batch([b"x" * (4 * MIB)], compression=Compression.ZSTD), ErrorCode.NONE),  # in a thread
        (sealed(RECORD * 2, 2), ErrorCode.INVALID_RECORD),
        (sealed(RECORD, 1)[:-1] + b"\1", ErrorCode.CORRUPT_MESSAGE),
        (batch([b"k"], timestamp=NOW), ErrorCode.NONE),
    ],
)
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
async def test_partitions_of_one_request_are_checked_by_themselves(
    client: RawClient, first: bytes, code: ErrorCode, order: tuple[int, int]
) -> None:
    usual = batch([b"a"], timestamp=NOW)
    request = produce_request("t", None)
    request.topic_data[0].partition_data = [
        produce.PartitionProduceData(index=index, records=(first, usual)[index]) for index in order
    ]
    answers = (await client.ask(request, 9)).responses[0].partition_responses
    assert [(one.index, one.error_code) for one in answers] == [
        (index, (code, ErrorCode.NONE)[index]) for index in order
    ]


async def test_the_usual_batch_takes_one_call_and_others_a_full_check(broker: Broker) -> None:
    rules = broker.state.topics.require("t").rules
    data = batch([b"a", b"b"], timestamp=NOW)
    usual = memoryview(bytearray(data))
    checked = check_usual(usual, rules, NOW, 2)
    assert checked is not None
    assert checked.data is usual
    assert repr(checked.headers) == repr(check_batches(data, 9, rules, NOW).headers)
    strict = rules._replace(timestamp_before_max_ms=5, timestamp_after_max_ms=5)
    assert check_usual(usual, strict, NOW + 5, 2) is not None
    for records, others, now, most in (
        (None, rules, NOW, 2),
        (memoryview(data), rules, NOW, 2),  # cannot be patched
        (memoryview(bytearray(batch([b"a"], compression=Compression.LZ4))), rules, NOW, 2),
        (usual, rules, NOW, 1),  # too many for the event loop
        (usual, rules._replace(max_message_bytes=len(data) - 1), NOW, 2),
        (usual, rules._replace(compacted=True), NOW, 2),
        (usual, rules._replace(compression=Compression.GZIP), NOW, 2),
        (usual, strict, NOW + 6, 2),
        (usual, strict, NOW - 6, 2),
    ):
        assert check_usual(records, others, now, most) is None


async def _at_time(client: RawClient, timestamp: int) -> list[list_offsets.ListOffsetsPartitionResponse]:
    request = list_offsets.ListOffsetsRequest(
        replica_id=-1,
        topics=[
            list_offsets.ListOffsetsTopic(
                name="t",
                partitions=[
                    list_offsets.ListOffsetsPartition(partition_index=index, timestamp=timestamp) for index in (0, 1)
                ],
            )
        ],
    )
    return (await client.ask(request, 7)).topics[0].partitions


def _store(log: PartitionLog, data: bytes) -> None:
    """Append without any check, as if the disk had corrupted the data."""
    log.append(bytearray(data), now_ms=NOW)


@pytest.mark.parametrize("timestamp", [NOW, -3])
@pytest.mark.parametrize("codec", [Compression.NONE, Compression.ZSTD])
async def test_a_corrupt_batch_fails_a_lookup_by_time_in_its_partition(
    broker: Broker, client: RawClient, timestamp: int, codec: int
) -> None:
    _store(broker.state.topics.require("t").partitions[0].log, sealed(b"nonsense" * 20, 3, codec=codec))
    await produce_one(client, "t", batch([b"a"], timestamp=NOW), partition=1)
    for _ in range(3):
        corrupt, sound = await _at_time(client, timestamp)
        assert (corrupt.error_code, corrupt.offset) == (ErrorCode.CORRUPT_MESSAGE, -1)
        assert (sound.error_code, sound.offset, sound.timestamp) == (0, 0, NOW)


async def test_a_large_batch_is_searched_by_time_in_a_thread(client: RawClient) -> None:
    values = [b"%d" % number * 200 for number in range(10_000)]
    await produce_one(client, "t", batch(values, timestamp=NOW, compression=Compression.ZSTD))
    for timestamp, offset in ((NOW + 9_998, 9_998), (NOW + 10_001, -1), (-3, 9_999)):
        found, _ = await _at_time(client, timestamp)
        assert (found.error_code, found.offset) == (0, offset)
