"""BatchBuilder: its bytes are the reference's, its limits hold, and bad arguments lose nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokwire.errors import InvalidArgument
from aiokwire.records import BatchBuilder, Record, decompress, estimate_size, read_batches
from aiokwire.types import Compression
from tests.records import reference
from tests.records.reference import Row
from tests.records.strategies import CONTENTS, HEADERS, codecs_of, rows


def built(magic: int, records: list[Row], limit: int = 1 << 20) -> BatchBuilder:
    builder = BatchBuilder(magic, limit)
    for row in records:
        assert builder.append_at(row.delta, row.timestamp, row.key, row.value, row.headers) == row.delta
    return builder


@given(rows(gaps=True))
def test_a_plain_batch_has_the_references_bytes(records: list[Row]) -> None:
    assert bytes(built(2, records).seal()) == reference.plain_batch(records)


@given(rows(headers=False), st.sampled_from([0, 1]), st.integers(0, 1 << 60))
def test_a_plain_message_set_has_the_references_bytes(records: list[Row], magic: int, base_offset: int) -> None:
    sealed = built(magic, records).seal(base_offset=base_offset)
    assert bytes(sealed) == reference.message_set(magic, records, base_offset)


@given(rows(), st.sampled_from(codecs_of(2)))
def test_a_compressed_batch_carries_the_references_records(records: list[Row], codec: Compression) -> None:
    sealed = bytes(built(2, records).seal(compression=codec))
    payload = b"".join(reference.record(row, records[0].timestamp) for row in records)
    assert decompress(codec, sealed[61:]) == payload
    assert sealed == reference.batch(sealed[61:], records, attributes=int(codec))


@given(rows(headers=False), st.sampled_from([0, 1]), st.sampled_from(codecs_of(1)[1:]))
def test_a_compressed_message_set_is_one_message(records: list[Row], magic: int, codec: Compression) -> None:
    sealed = bytes(built(magic, records).seal(compression=codec, base_offset=1000))
    inner = sealed[(26 if magic else 18) + 8 :]
    # format 0 has final offsets inside, format 1 relative ones
    assert decompress(codec, inner) == reference.message_set(magic, records, 0 if magic else 1000)
    newest = max(row.timestamp for row in records)
    wrapper = reference.message(magic, 1000 + records[-1].delta, newest, None, inner, int(codec))
    assert sealed == wrapper


def test_producer_state_and_flags_stand_in_the_header() -> None:
    builder = built(2, [Row(0, 5, b"k", b"v")])
    sealed = builder.seal(
        producer_id=1 << 40, producer_epoch=3, base_sequence=77, transactional=True, base_offset=9, leader_epoch=4
    )
    row = Row(0, 5, b"k", b"v")
    wanted = reference.batch(
        reference.record(row, 5), [row], attributes=16, base_offset=9, leader_epoch=4, producer=(1 << 40, 3, 77)
    )
    assert bytes(sealed) == wanted


def test_log_append_time_covers_all_records() -> None:
    for magic in (1, 2):
        for codec in codecs_of(magic):
            sealed = built(magic, [Row(0, 5, None, b"a"), Row(1, 6, None, b"b")]).seal(
                compression=codec, log_append_time=99
            )
            records = [record for batch in read_batches(sealed, "t", 0) for record in batch.records()]
            assert [(record.timestamp, int(record.timestamp_type)) for record in records] == [(99, 1), (99, 1)]


def test_what_does_not_fit_is_refused_and_changes_nothing() -> None:
    builder = BatchBuilder(2, 200)
    assert builder.append(1, None, b"x" * 80) == 0
    size = builder.size
    assert builder.append(2, None, b"x" * 80) == -1
    assert (builder.count, builder.size, builder.max_timestamp) == (1, size, 1)
    assert builder.append(2, None, b"x" * 10) == 1
    assert len(builder.seal()) == builder.size


def test_an_empty_builder_takes_a_record_above_its_limit() -> None:
    builder = BatchBuilder(2, 100)
    assert builder.append(1, None, b"x" * 100_000) == 0
    assert read_batches(builder.seal(), "t", 0)[0].values() == [b"x" * 100_000]


@given(CONTENTS, CONTENTS, HEADERS)
def test_the_estimate_is_an_upper_bound(
    key: bytes | None, value: bytes | None, headers: tuple[tuple[str, bytes | None], ...]
) -> None:
    for magic in (0, 1, 2):
        chosen = headers if magic == 2 else ()
        builder = BatchBuilder(magic, 1)
        builder.append(1 << 60, key, value, chosen)
        assert builder.size <= estimate_size(key, value, chosen, magic) <= builder.size + 30


def test_bytes_likes_are_taken_as_they_are() -> None:
    builder = BatchBuilder(2, 1000)
    builder.append(1, bytearray(b"key"), memoryview(b"-value-")[1:6], [("h", b"x")])
    (record,) = read_batches(builder.seal(), "t", 0)[0].records()
    assert record == Record("t", 0, 0, 1, b"key", b"value", [("h", b"x")])


@pytest.mark.parametrize(
    ("key", "value", "headers", "message"),
    [
        ("text", b"", (), "key must be bytes, bytearray, memoryview or None, not str"),
        (b"", 5, (), "value must be bytes, bytearray, memoryview or None, not int"),
        (b"", b"", 5, "headers must be a sequence"),
        (b"", b"", {"a": b""}, "not dict"),
        (b"", b"", [b"ab"], "a header must be a pair"),
        (b"", b"", [(b"a", b"")], "a header's name must be str, not bytes"),
        (b"", b"", [("a", "text")], "the value of header 'a' must be bytes"),
        (b"", b"", [("\ud800", b"")], "encodable as UTF-8"),
    ],
)
def test_a_wrong_type_is_named_and_changes_nothing(key: object, value: object, headers: object, message: str) -> None:
    builder = built(2, [Row(0, 1, b"k", b"v")])
    before = builder.size
    with pytest.raises(InvalidArgument, match=message):
        builder.append(1, key, value, headers)  # type: ignore[arg-type]  # wrong on purpose
    assert (builder.size, builder.count) == (before, 1)
    assert read_batches(builder.seal(), "t", 0)[0].count == 1


def test_old_formats_refuse_headers() -> None:
    with pytest.raises(InvalidArgument, match="headers need message format 2"):
        BatchBuilder(1, 1000).append(1, b"", b"", [("h", b"x")])


def test_offsets_must_rise() -> None:
    builder = built(2, [Row(5, 1, b"k", b"v")])
    with pytest.raises(InvalidArgument, match="offsets must rise"):
        builder.append_at(5, 1, b"", b"")
    assert builder.append(1, b"", b"") == 6


def test_a_sealed_builder_is_closed_until_its_view_is_gone() -> None:
    builder = built(2, [Row(0, 1, b"k", b"v")])
    view = builder.seal()
    assert isinstance(view, memoryview)
    with pytest.raises(InvalidArgument, match="sealed already"):
        builder.seal()
    with pytest.raises(InvalidArgument, match="sealed: reset"):
        builder.append(1, b"", b"")
    with pytest.raises(BufferError, match="still in use"):
        builder.reset()
    view.release()
    builder.reset()
    assert (builder.count, builder.size, builder.sealed) == (0, 61, False)
    builder.append(7, None, b"again")
    assert read_batches(builder.seal(), "t", 0)[0].records()[0].timestamp == 7


def test_a_refused_seal_leaves_the_builder_open() -> None:
    builder = built(2, [Row(0, 1, b"k", b"v")])
    with pytest.raises(InvalidArgument, match="gzip has levels -1 to 9, not 99"):
        builder.seal(compression=Compression.GZIP, level=99)
    assert builder.append(2, b"", b"") == 1
    assert read_batches(builder.seal(compression=Compression.GZIP, level=9), "t", 0)[0].count == 2


def test_an_empty_builder_cannot_be_sealed() -> None:
    with pytest.raises(InvalidArgument, match="empty batch cannot be sealed"):
        BatchBuilder(2, 100).seal()


def test_a_key_that_seals_the_builder_while_it_is_converted_is_refused() -> None:
    builder = built(2, [Row(0, 1, b"k", b"v")])
    sealed = []

    class Hostile(bytes):
        def __bytes__(self) -> bytes:
            sealed.append(builder.seal())
            return b"late"

    with pytest.raises(InvalidArgument, match="sealed"):
        builder.append(1, Hostile(), b"")
    assert read_batches(sealed[0], "t", 0)[0].count == 1
