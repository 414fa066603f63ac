"""The primitive types: round trips in both encodings, and hostile lengths."""

from __future__ import annotations

import contextlib
import copy
import gc
import pickle
import struct
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aiokwire.errors import InvalidArgument, ProtocolViolation
from aiokwire.protocol._codec import CompactReader, CompactWriter, PlainReader, PlainWriter, release
from aiokwire.protocol.messages import metadata

BOTH = pytest.mark.parametrize(
    ("writer", "reader"), [(PlainWriter, PlainReader), (CompactWriter, CompactReader)], ids=["plain", "compact"]
)
TEXT = st.text(max_size=200)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "int8": st.integers(-(2**7), 2**7 - 1),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "uint16": st.integers(0, 2**16 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "uint32": st.integers(0, 2**32 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float64": st.floats(allow_nan=False),
    "uuid": st.binary(min_size=16, max_size=16),
    "string": TEXT,
    "nullable_string": st.none() | TEXT,
    "plain_nullable_string": st.none() | TEXT,
    "bytes_": st.binary(max_size=3000),
    "nullable_bytes": st.none() | st.binary(max_size=3000),
    "records": st.binary(max_size=3000),
    "nullable_records": st.none() | st.binary(max_size=3000),
    "present": st.booleans(),
    "int8s": st.lists(st.integers(-(2**7), 2**7 - 1)),
    "int16s": st.lists(st.integers(-(2**15), 2**15 - 1)),
    "int32s": st.lists(st.integers(-(2**31), 2**31 - 1)),
    "int64s": st.lists(st.integers(-(2**63), 2**63 - 1)),
    "strings": st.lists(TEXT),
    "uuids": st.lists(st.binary(min_size=16, max_size=16)),
    "nullable_int32s": st.none() | st.lists(st.integers(-(2**31), 2**31 - 1)),
    "nullable_strings": st.none() | st.lists(TEXT),
    "nullable_uuids": st.none() | st.lists(st.binary(min_size=16, max_size=16)),
}
READS = [*VALUES, "array_length", "nullable_array_length", "tags", "tagged", "rest"]
CALL = st.sampled_from(list(VALUES)).flatmap(lambda name: st.tuples(st.just(name), VALUES[name]))


@BOTH
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(calls=st.lists(CALL, max_size=8))
def test_written_data_is_read_back(
    writer: type[PlainWriter], reader: type[PlainReader], calls: list[tuple[str, Any]]
) -> None:
    out = writer()
    for name, value in calls:
        getattr(out, name)(value)
    assert out.size == len(out.getvalue())
    src = reader(out.getvalue())
    for name, value in calls:
        assert getattr(src, name)() == value
    src.end()


@BOTH
@given(name=st.sampled_from(READS), data=st.binary(max_size=40))
def test_random_bytes_are_a_value_or_a_violation(
    writer: type[PlainWriter], reader: type[PlainReader], name: str, data: bytes
) -> None:
    src = reader(data)
    with contextlib.suppress(ProtocolViolation):
        getattr(src, name)()
    assert 0 <= src.position <= len(data)


@given(value=st.integers(-(2**63), 2**63 - 1))
def test_integers_are_big_endian(value: int) -> None:
    out = PlainWriter()
    out.int64(value)
    assert out.getvalue() == struct.pack(">q", value)


def test_known_encodings() -> None:
    cases: list[tuple[str, Any, bytes, bytes]] = [
        ("string", "ab", b"\0\2ab", b"\3ab"),
        ("nullable_string", None, b"\xff\xff", b"\0"),
        ("plain_nullable_string", "ab", b"\0\2ab", b"\0\2ab"),
        ("nullable_bytes", None, b"\xff\xff\xff\xff", b"\0"),
        ("bytes_", b"x" * 200, b"\0\0\0\xc8" + b"x" * 200, b"\xc9\1" + b"x" * 200),
        ("int32s", [1], b"\0\0\0\1\0\0\0\1", b"\2\0\0\0\1"),
        ("nullable_array_length", -1, b"\xff\xff\xff\xff", b"\0"),
        ("present", False, b"\xff", b"\xff"),
    ]
    for name, value, plain, compact in cases:
        for writer, expected in ((PlainWriter, plain), (CompactWriter, compact)):
            out = writer()
            getattr(out, name)(value)
            assert out.getvalue() == expected, name


def test_a_large_buffer_becomes_its_own_chunk() -> None:
    large = bytearray(5000)
    out = PlainWriter(framed=True)
    out.int8(1)
    out.records(large)
    out.int8(2)
    chunks = out.chunks()
    assert [len(chunk) for chunk in chunks] == [9, 5000, 1]
    assert chunks[1] is large
    assert struct.unpack(">i", bytes(chunks[0])[:4]) == (out.size - 4,)


@pytest.mark.parametrize(
    ("reader", "data"),
    [
        (PlainReader, b"\x7f\xff\xff\xff" + bytes(10)),
        (PlainReader, b"\x80\0\0\0" + bytes(10)),
        (PlainReader, b"\xff\xff\xff\xfe" + bytes(10)),
        (CompactReader, b"\xff\xff\xff\xff\x0f" + bytes(10)),
        (CompactReader, b"\xff\xff\xff\xff\xff\xff\x0f" + bytes(10)),
    ],
)
@pytest.mark.parametrize("name", ["bytes_", "records", "array_length", "strings", "int32s", "nullable_uuids", "tags"])
def test_hostile_lengths_allocate_nothing(reader: type[PlainReader], data: bytes, name: str) -> None:
    if reader is PlainReader and name == "tags":
        assert reader(data).tags() == ()
        return
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolViolation):
            getattr(reader(data), name)()
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["string", "bytes_", "records", "array_length", "int32s", "strings"])
def test_null_is_refused_where_a_field_may_not_be_null(name: str) -> None:
    for src in (PlainReader(b"\xff\xff\xff\xff"), CompactReader(b"\0")):
        with pytest.raises(ProtocolViolation, match="null"):
            getattr(src, name)()


def test_text_that_is_not_utf8_is_a_violation() -> None:
    with pytest.raises(ProtocolViolation, match="UTF-8"):
        PlainReader(b"\0\1\xff").string()


def test_tags_out_of_order_are_a_violation() -> None:
    for data in (b"\2\5\0\3\0", b"\2\5\0\5\0"):
        with pytest.raises(ProtocolViolation, match="tag"):
            CompactReader(data).tags()


def test_a_tagged_field_ends_at_its_size() -> None:
    ((tag, field),) = CompactReader(b"\1\7\2ab" + b"beyond").tagged()
    assert (tag, field.remaining) == (7, 2)
    with pytest.raises(ProtocolViolation):
        field.int32()


def test_known_and_unknown_tags_are_written_in_ascending_order() -> None:
    out = CompactWriter()
    field = out.nested()
    field.int8(5)
    out.tags(((0, b"zero"), (9, b"nine")), [(3, field)])
    assert CompactReader(out.getvalue()).tags() == ((0, b"zero"), (3, b"\5"), (9, b"nine"))


def test_leftover_bytes_are_a_violation() -> None:
    with pytest.raises(ProtocolViolation, match="2 bytes follow"):
        PlainReader(b"ab").end()


@pytest.mark.parametrize(
    "write",
    [
        lambda out: out.uuid(b"short"),
        lambda out: out.string(None),
        lambda out: out.string("x" * 40_000),
        lambda out: out.string("\ud800"),
        lambda out: out.bytes_(None),
    ],
)
def test_values_that_the_protocol_cannot_express_are_refused(write: Callable[[PlainWriter], int]) -> None:
    for out in (PlainWriter(), CompactWriter()):
        with pytest.raises(InvalidArgument):
            write(out)


def test_a_reader_starts_anywhere_within_its_buffer() -> None:
    assert PlainReader(bytearray(b"xxx\0\7"), 3).int16() == 7
    assert PlainReader(memoryview(struct.pack("=2h", 1, 2)).cast("h")).remaining == 4
    with pytest.raises(ProtocolViolation):
        PlainReader(b"ab", 3)
    with pytest.raises(InvalidArgument, match="contiguous"):
        PlainReader(memoryview(b"abcd")[::2])


@given(limit=st.integers(0, 30), sizes=st.lists(st.integers(0, 10), max_size=6), compact=st.booleans())
def test_a_reader_refuses_the_array_that_exceeds_its_limit_of_elements(
    limit: int, sizes: list[int], compact: bool
) -> None:
    out = CompactWriter() if compact else PlainWriter()
    for size in sizes:
        out.int32s([7] * size)
    src = (CompactReader if compact else PlainReader)(out.getvalue())
    src.limit_elements(limit)
    read = 0
    for size in sizes:
        if read + size > limit:
            with pytest.raises(ProtocolViolation, match=f"array of {size} elements"):
                src.int32s()
            return
        assert src.int32s() == [7] * size
        read += size
    src.end()


@BOTH
def test_long_arrays_are_read_again(writer: type[PlainWriter], reader: type[PlainReader]) -> None:
    """They let other threads run after each 16,384 elements."""
    numbers, texts, uuids = list(range(50_000)), [str(number) for number in range(50_000)], [bytes(range(16))] * 50_000
    out = writer()
    out.int32s(numbers)
    out.strings(texts)
    out.uuids(uuids)
    out.bytes_(bytes(3 << 20))
    src = reader(out.getvalue())
    assert (src.int32s(), src.strings(), src.uuids(), src.bytes_()) == (numbers, texts, uuids, bytes(3 << 20))
    src.end()


def test_a_compact_string_has_at_most_the_bytes_that_one_may_be_written_with() -> None:
    longest = 0x7FFF
    for size in (longest, longest + 1):
        out = CompactWriter()
        out.bytes_(b"a" * size)
        if size == longest:
            assert CompactReader(out.getvalue()).string() == "a" * size
        else:
            with pytest.raises(ProtocolViolation, match="a string of 32768 bytes"):
                CompactReader(out.getvalue()).string()


def test_thousands_of_tagged_fields_are_a_violation() -> None:
    for count in (1000, 1001):
        out = CompactWriter()
        out.tags(tuple((tag, b"") for tag in range(count)))
        if count == 1000:
            assert len(CompactReader(out.getvalue()).tags()) == count
        else:
            with pytest.raises(ProtocolViolation, match="1001 tagged fields"):
                CompactReader(out.getvalue()).tags()


@BOTH
def test_the_garbage_collector_does_not_go_through_messages(
    writer: type[PlainWriter], reader: type[PlainReader]
) -> None:
    partition = metadata.MetadataResponsePartition(replica_nodes=[1, 2])
    version = 8 if writer is PlainWriter else 9
    out = writer()
    metadata.MetadataResponse(topics=[metadata.MetadataResponseTopic(name="t", partitions=[partition])]).encode(
        out, version
    )
    message = metadata.MetadataResponse.decode(reader(out.getvalue()), version)
    topic = message.topics[0]
    found = [message, message.topics, topic, topic.partitions, topic.partitions[0], topic.partitions[0].replica_nodes]
    assert not any(map(gc.is_tracked, found))
    assert message.topics[0].partitions == [partition]


def test_released_lists_are_empty() -> None:
    items = [[number] for number in range(40_000)]
    release(items)
    assert items == []


def test_a_message_is_copied_and_pickled_like_any_object() -> None:
    broker = metadata.MetadataResponseBroker(node_id=3, host="h", port=9092)
    assert copy.copy(broker) == broker
    assert pickle.loads(pickle.dumps(broker)) == broker
