"""The five codecs of Kafka's batches, with a limit on the decompressed size.

The kernel calls `compress` and `decompress` once per batch. The limit applies during decompression:
a hostile batch never allocates more. Codec libraries load at the first use of their codec.
"""

from __future__ import annotations

import importlib
import io
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from aiokwire.errors import ConfigurationError, CorruptRecord, InvalidArgument
from aiokwire.records._hash import xxh32
from aiokwire.types import Compression

if TYPE_CHECKING:
    from typing_extensions import Buffer

DEFAULT_LIMIT = 256 << 20

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK = 32 << 10
_LZ4_MAGIC = b"\x04\x22\x4d\x18"
# The input size for the second and later parts of a stream: the libraries copy unread input, and thousands of tiny
# parts must not each copy the rest. The first part, nearly always the only one, gets all input at once.
_WINDOW = 4 << 10
# The most output and input of one call: zlib joins the output of a call, and copies its unread input.
_GZIP_STEP = 1 << 20
_GZIP_WINDOW = 64 << 10
_CODECS: Final = frozenset(Compression)
_LEVELS = {
    Compression.GZIP: range(-1, 10),
    Compression.LZ4: range(1, 18),
    Compression.ZSTD: range(-131072, 23),
}
_LIBRARIES: dict[int, str] = {
    Compression.SNAPPY: "snappy",
    Compression.LZ4: "lz4.frame",
    Compression.ZSTD: "zstandard",
}
# Larger outputs grow in place: a list of pieces and their joined copy would take twice the memory. glibc moves pages
# when memory of this size grows; a smaller one it may copy, and no other thread runs meanwhile.
_IN_PLACE = 32 << 20
_per_thread = threading.local()


def check_level(codec: int, level: int | None) -> None:
    """Check codec and level, and load the codec's library, before `compress` is called.

    Raises: InvalidArgument: for an unknown codec or a level that it does not have;
        ConfigurationError: when the codec's library is missing.
    """
    if codec not in _CODECS:
        raise InvalidArgument(f"{codec} is not a compression codec: choose 0 to 4")
    if codec in _LIBRARIES:
        _library(_LIBRARIES[codec])
    if level is None:
        return
    levels = _LEVELS.get(Compression(codec))
    name = Compression(codec).name.lower()
    if levels is None:
        raise InvalidArgument(f"{name} has no compression level")
    if level not in levels:
        raise InvalidArgument(f"{name} has levels {levels[0]} to {levels[-1]}, not {level}")


def compress(codec: int, data: Buffer, level: int | None = None, *, magic: int = 2) -> bytes:
    """Compress `data` as one stream, for message format `magic`.

    Raises: InvalidArgument: for an unknown codec or level; ConfigurationError: when the codec's
    library is missing.
    """
    check_level(codec, level)
    view = memoryview(data).cast("B")
    match codec:
        case Compression.GZIP:
            packer = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, 31)
            return packer.compress(view) + packer.flush()
        case Compression.SNAPPY:
            return _compress_snappy(view)
        case Compression.LZ4:
            return _compress_lz4(view, level, old_checksum=magic == 0)
        case Compression.ZSTD:
            return _compress_zstd(view, 3 if level is None else level)
    return bytes(view)


def decompress(codec: int, data: Buffer, limit: int = DEFAULT_LIMIT) -> bytes:
    """Decompress `data`.

    Raises: CorruptRecord: for corrupt bytes, an unknown codec, or more than `limit` bytes;
        ConfigurationError: when the codec's library is missing.
    """
    view = memoryview(data).cast("B")
    reader = _READERS.get(codec)
    if reader is None:
        raise CorruptRecord(f"the compression codec {codec} is unknown")
    failure: Exception
    try:
        return reader(view, limit)
    except (CorruptRecord, ConfigurationError, MemoryError) as error:
        failure = error
    except Exception as error:  # each library has its own classes, some a plain RuntimeError
        failure = CorruptRecord(f"the {Compression(codec).name.lower()} data is corrupt: {error}")
        failure.__cause__ = error.with_traceback(None)
    raise failure.with_traceback(None)  # the frames of the reader would keep its output as long as the error


class TooLarge(CorruptRecord):
    """The decompressed data exceeds the limit for one batch."""


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"decompresses to more than {limit} bytes (the limit for one batch)")


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConfigurationError(f"the compression library {name} cannot be loaded: {error}") from error


def _plain(view: memoryview, limit: int) -> bytes:
    if len(view) > limit:
        raise _too_large(limit)
    return bytes(view)


def _gunzip(view: memoryview, limit: int) -> bytes:
    output = _Output(limit)
    at, window = 0, _GZIP_WINDOW
    while True:
        unpacker = zlib.decompressobj(31)
        while not unpacker.eof:
            chunk: bytes | memoryview = unpacker.unconsumed_tail
            if not chunk:
                chunk = view[at : at + window]
                at += len(chunk)
            part = unpacker.decompress(chunk, min(_GZIP_STEP, output.room + 1))
            if len(part) > output.room:
                raise _too_large(limit)
            if part:
                output.add(part)
            elif not len(chunk) and not unpacker.eof:
                raise CorruptRecord("the gzip data is truncated")
        at -= len(unpacker.unused_data)
        if at == len(view):
            return output.joined()
        window = _WINDOW


class _Output:
    """Collects the output of a decompressor, up to a limit."""

    def __init__(self, limit: int) -> None:
        self.room = limit
        self._size = 0
        self._parts: list[bytes] = []
        self._stream: io.BytesIO | None = None

    def add(self, part: bytes) -> None:
        self.room -= len(part)
        self._size += len(part)
        if self._stream is not None:
            self._stream.write(part)
            return
        self._parts.append(part)
        if self._size > _IN_PLACE and len(self._parts) > 1:
            self._stream = io.BytesIO(b"".join(self._parts))  # the join runs beside other threads
            self._stream.seek(0, io.SEEK_END)
            self._parts.clear()

    def joined(self) -> bytes:
        """Return the whole output. Call it last."""
        if self._stream is not None:
            return self._stream.getvalue()
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)


# --- snappy: Kafka writes xerial's framing (blocks with an int32 length); some clients write one raw block ------------


def _compress_snappy(view: memoryview) -> bytes:
    pack = _library(_LIBRARIES[Compression.SNAPPY]).compress
    parts = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK):
        block = pack(view[start : start + _XERIAL_BLOCK])
        parts += (struct.pack(">i", len(block)), block)
    return b"".join(parts)


def _snappy_blocks(view: memoryview) -> Iterator[memoryview]:
    if view[:8] != _XERIAL_MAGIC:
        yield view
        return
    at = 0
    while at < len(view):
        if view[at : at + 8] == _XERIAL_MAGIC:  # again where streams were joined
            at += 16
            continue
        if len(view) - at < 4:
            raise CorruptRecord("the snappy data is truncated")
        (size,) = struct.unpack_from(">i", view, at)
        at += 4
        if not 0 < size <= len(view) - at:
            raise CorruptRecord("the length of a snappy block does not match")
        yield view[at : at + size]
        at += size


def _snappy_size(block: memoryview) -> int:
    size = 0
    for index, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            # a copy of 64 bytes takes at least 2: no honest block grows more than 32 times
            if size > 32 * len(block):
                break
            return size
    raise CorruptRecord("a snappy block has an impossible size")


def _unsnappy(view: memoryview, limit: int) -> bytes:
    unpack = _library(_LIBRARIES[Compression.SNAPPY]).uncompress
    output = _Output(limit)
    for block in _snappy_blocks(view):
        if _snappy_size(block) > output.room:
            raise _too_large(limit)
        output.add(unpack(block))
    return output.joined()


# --- lz4: the frame format; up to 0.9, and in format 0 still, Kafka hashed the frame's magic into the header
# checksum too (KAFKA-3160) --------------------------------------------------------------------------------------------


def _lz4_header_end(frame: Buffer) -> int:
    """Return the position of the header checksum; 0 without a valid header."""
    head = memoryview(frame)[:20]
    if len(head) < 7 or head[:4] != _LZ4_MAGIC:
        return 0
    at = 6 + (8 if head[4] & 8 else 0) + (4 if head[4] & 1 else 0)
    return at if at < len(head) else 0


def _compress_lz4(view: memoryview, level: int | None, *, old_checksum: bool) -> bytes:
    # Java's reader takes independent blocks only
    packed: bytes = _library(_LIBRARIES[Compression.LZ4]).compress(
        view,
        compression_level=0 if level is None else min(level, 16),
        block_linked=False,
        block_size=4,
        store_size=False,
    )
    if not old_checksum:
        return packed
    at = _lz4_header_end(packed)
    return packed[:at] + bytes([xxh32(packed[:at]) >> 8 & 0xFF]) + packed[at + 1 :]


def _mend_lz4_header(view: memoryview) -> memoryview:
    at = _lz4_header_end(view)
    if not at or view[at] != xxh32(view[:at]) >> 8 & 0xFF:
        return view
    mended = bytearray(view)
    mended[at] = xxh32(view[4:at]) >> 8 & 0xFF
    return memoryview(mended)


def _unlz4(view: memoryview, limit: int) -> bytes:
    new_reader = _library(_LIBRARIES[Compression.LZ4]).LZ4FrameDecompressor
    output = _Output(limit)
    step = max(4 * len(view), 64 << 10)
    at, window = 0, len(view)
    while at < len(view):
        reader = new_reader()
        chunk: Buffer = _mend_lz4_header(view[at : at + window])
        at += window
        while not reader.eof:
            part = reader.decompress(chunk, max_length=min(step, output.room + 1))
            if len(part) > output.room:
                raise _too_large(limit)
            chunk = b""
            if part:
                output.add(part)
            elif reader.needs_input and not reader.eof:
                if at >= len(view):
                    raise CorruptRecord("the lz4 data is truncated")
                chunk = view[at : at + window]
                at += window
        at = min(at, len(view)) - len(reader.unused_data or b"")
        window = _WINDOW
    return output.joined()


# --- zstd: one or more frames, with or without their size -------------------------------------------------------------


def _compress_zstd(view: memoryview, level: int) -> bytes:
    packers: dict[int, Any] = _per_thread.__dict__.setdefault("zstd_packers", {})
    packer = packers.get(level)
    if packer is None:
        packer = packers[level] = _library(_LIBRARIES[Compression.ZSTD]).ZstdCompressor(level=level)
    packed: bytes = packer.compress(view)
    return packed


def _unzstd(view: memoryview, limit: int) -> bytes:
    unpacker = _per_thread.__dict__.get("zstd_unpacker")
    if unpacker is None:
        unpacker = _per_thread.__dict__["zstd_unpacker"] = _library(_LIBRARIES[Compression.ZSTD]).ZstdDecompressor()
    output = _Output(limit)
    step = max(4 * len(view), 64 << 10)
    with unpacker.stream_reader(view, read_size=max(len(view), 1), read_across_frames=True, closefd=False) as reader:
        while True:
            part = reader.read(min(step, output.room + 1))
            if not part:
                break
            if len(part) > output.room:
                raise _too_large(limit)
            output.add(part)
    return output.joined()


_READERS: dict[int, Callable[[memoryview, int], bytes]] = {
    Compression.NONE: _plain,
    Compression.GZIP: _gunzip,
    Compression.SNAPPY: _unsnappy,
    Compression.LZ4: _unlz4,
    Compression.ZSTD: _unzstd,
}
