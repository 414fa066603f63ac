"""The codecs: every framing that Kafka's clients write is read, nothing grows beyond the limit."""

from __future__ import annotations

import gzip
import random
import struct
import time
import tracemalloc
import zlib

import lz4.frame  # type: ignore[import-untyped]  # ships no annotations
import pytest
import snappy  # type: ignore[import-untyped]  # ships no annotations
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from aiokwire.errors import ConfigurationError, CorruptRecord, InvalidArgument
from aiokwire.records import check_level, compress, decompress
from aiokwire.records import compression as module
from aiokwire.records._hash import xxh32
from aiokwire.types import Compression
from tests.records.strategies import CODECS

TEXT = b"the same words again and again, " * 4000
NOISE = random.Random(3).randbytes(300_000)


@given(st.binary(max_size=2000), CODECS, st.integers(1, 60))
def test_compressed_data_is_decompressed_unchanged(data: bytes, codec: Compression, times: int) -> None:
    assert decompress(codec, compress(codec, memoryview(data * times))) == data * times


@pytest.mark.parametrize(
    ("codec", "levels"),
    [(Compression.GZIP, (-1, 0, 1, 9)), (Compression.LZ4, (1, 9, 17)), (Compression.ZSTD, (-5, 1, 19))],
)
def test_every_level_works(codec: Compression, levels: tuple[int, ...]) -> None:
    for level in levels:
        check_level(codec, level)
        assert decompress(codec, compress(codec, TEXT, level)) == TEXT


def test_levels_are_used() -> None:
    assert len(compress(Compression.GZIP, TEXT, 9)) < len(compress(Compression.GZIP, TEXT, 0)) // 10


@pytest.mark.parametrize(
    ("codec", "level", "message"),
    [
        (Compression.GZIP, 10, "gzip has levels -1 to 9, not 10"),
        (Compression.LZ4, 0, "lz4 has levels 1 to 17, not 0"),
        (Compression.ZSTD, 23, "zstd has levels -131072 to 22, not 23"),
        (Compression.SNAPPY, 1, "snappy has no compression level"),
        (7, None, "7 is not a compression codec"),
    ],
)
def test_wrong_levels_and_codecs_are_refused(codec: int, level: int | None, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        check_level(codec, level)


def test_raw_snappy_is_read() -> None:
    assert decompress(Compression.SNAPPY, snappy.compress(TEXT)) == TEXT


def test_xerial_snappy_is_written_and_joined_streams_are_read() -> None:
    packed = compress(Compression.SNAPPY, TEXT)
    assert packed[:16] == b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
    (size,) = struct.unpack_from(">i", packed, 16)
    assert snappy.uncompress(packed[20 : 20 + size]) == TEXT[: 32 << 10]
    assert decompress(Compression.SNAPPY, packed + packed) == TEXT + TEXT


def test_gzip_members_and_zstd_and_lz4_frames_are_joined() -> None:
    assert decompress(Compression.GZIP, gzip.compress(b"a") + gzip.compress(b"b")) == b"ab"
    for codec in (Compression.ZSTD, Compression.LZ4):
        assert decompress(codec, compress(codec, TEXT) + compress(codec, b"more")) == TEXT + b"more"


@pytest.mark.parametrize(
    ("codec", "one"),
    [(Compression.GZIP, gzip.compress(b"")), (Compression.LZ4, lz4.frame.compress(b""))],
    ids=["gzip", "lz4"],
)
def test_a_stream_of_tiny_parts_does_not_copy_all_the_rest_for_each(codec: Compression, one: bytes) -> None:
    """With a copy of the rest per part this takes 15 s; a hostile batch may have even more."""
    began = time.process_time()
    assert decompress(codec, one * 200_000) == b""
    assert time.process_time() - began < 8


def test_large_parts_after_the_first_are_read_whole() -> None:
    for codec in (Compression.GZIP, Compression.LZ4):
        packed = compress(codec, NOISE)
        assert decompress(codec, packed * 3) == NOISE * 3
        with pytest.raises(CorruptRecord, match="truncated"):
            decompress(codec, (packed * 2)[:-50])


def test_zstd_frames_without_their_size_are_read() -> None:
    streamed = zstandard.ZstdCompressor().compressobj()
    packed = streamed.compress(TEXT) + streamed.flush()
    assert zstandard.get_frame_parameters(packed).content_size in (0, zstandard.CONTENTSIZE_UNKNOWN)
    assert decompress(Compression.ZSTD, packed + packed) == TEXT + TEXT


def test_lz4_of_format_0_has_the_old_header_checksum_and_is_read() -> None:
    right, old = compress(Compression.LZ4, TEXT), compress(Compression.LZ4, TEXT, magic=0)
    assert [index for index in range(len(right)) if right[index] != old[index]] == [6]
    with pytest.raises(RuntimeError):
        lz4.frame.decompress(old)
    assert decompress(Compression.LZ4, old) == TEXT
    assert decompress(Compression.LZ4, old + right + old) == TEXT * 3


def test_lz4_with_its_size_in_the_header_is_read_under_both_checksums() -> None:
    packed = bytearray(lz4.frame.compress(TEXT, store_size=True))
    assert decompress(Compression.LZ4, packed) == TEXT
    packed[14] = xxh32(bytes(packed[:14])) >> 8 & 0xFF
    assert decompress(Compression.LZ4, packed) == TEXT


def test_javas_lz4_reader_finds_independent_blocks() -> None:
    assert lz4.frame.get_frame_info(compress(Compression.LZ4, TEXT))["block_linked"] is False


@pytest.mark.parametrize("codec", list(Compression))
def test_the_limit_holds(codec: Compression) -> None:
    packed = compress(codec, TEXT)
    assert decompress(codec, packed, len(TEXT)) == TEXT
    with pytest.raises(CorruptRecord, match="decompresses to more than"):
        decompress(codec, packed, len(TEXT) - 1)


@pytest.mark.parametrize("codec", list(Compression)[1:])
def test_a_bomb_takes_little_more_memory_than_its_limit(codec: Compression) -> None:
    limit = 16 << 20
    bomb = compress(codec, bytes(10 * limit))
    with pytest.raises(CorruptRecord):
        decompress(codec, bomb[:-100], 1000)  # loads the codec's library
    tracemalloc.start()
    try:
        with pytest.raises(CorruptRecord, match="more than"):
            decompress(codec, bomb, limit)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.6 * limit


@pytest.mark.parametrize("codec", list(Compression)[1:])
def test_the_error_of_a_bomb_does_not_keep_its_output(codec: Compression) -> None:
    limit = 4 << 20
    bomb = compress(codec, bytes(10 * limit))
    tracemalloc.start()
    try:
        with pytest.raises(CorruptRecord, match="more than") as failure:
            decompress(codec, bomb, limit)
        assert tracemalloc.get_traced_memory()[0] < limit // 4, failure.value
    finally:
        tracemalloc.stop()


def test_the_limit_holds_over_all_frames() -> None:
    for codec in list(Compression)[1:]:
        packed = compress(codec, b"x" * 600)
        with pytest.raises(CorruptRecord, match="decompresses to more than 1000 bytes"):
            decompress(codec, packed + packed, 1000)


@pytest.mark.parametrize(
    ("codec", "data"),
    [
        (Compression.GZIP, b"no gzip"),
        (Compression.GZIP, b""),
        (Compression.GZIP, gzip.compress(TEXT)[:-9]),
        (Compression.GZIP, zlib.compress(TEXT)),
        (Compression.SNAPPY, b""),
        (Compression.SNAPPY, b"\xff\xff\xff\xff\x0f\x00"),
        (Compression.SNAPPY, b"\xff\xff\xff\xff\xff\xff\x0f\x00"),
        (Compression.SNAPPY, b"\x82SNAPPY\x00" + struct.pack(">iii", 1, 1, 50)),
        (Compression.SNAPPY, b"\x82SNAPPY\x00" + struct.pack(">iii", 1, 1, -5) + b"x" * 9),
        (Compression.SNAPPY, b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1) + b"ab"),
        (Compression.SNAPPY, b"\x0a\x00\x00"),
        (Compression.LZ4, b"no lz4"),
        (Compression.LZ4, compress(Compression.LZ4, TEXT)[:-20]),
        (Compression.LZ4, compress(Compression.LZ4, TEXT)[:6]),
        (Compression.ZSTD, b"no zstd at all"),
        (5, b""),
        (-1, b""),
    ],
)
def test_corrupt_data_raises_corrupt_record(codec: int, data: bytes) -> None:
    with pytest.raises(CorruptRecord):
        decompress(codec, data)


def test_a_missing_library_is_a_matter_of_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(module._LIBRARIES, Compression.LZ4, "no_such_library")
    with pytest.raises(ConfigurationError, match="no_such_library cannot be loaded"):
        check_level(Compression.LZ4, None)
    with pytest.raises(ConfigurationError, match="no_such_library cannot be loaded"):
        decompress(Compression.LZ4, b"data")
