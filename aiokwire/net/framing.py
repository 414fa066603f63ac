"""Splits a byte stream into frames, without I/O, with the interface of `asyncio.BufferedProtocol`.

Used by client connections and the embedded broker. A frame is a 4-byte length and that many bytes.
Reads go into a small shared buffer, which often holds several short frames; a frame that goes
beyond it gets a `bytearray` of its exact size, and the socket writes the rest into that.
"""

from __future__ import annotations

from collections.abc import Callable

from aiokwire.errors import ProtocolViolation
from aiokwire.net._buffer import unfilled

HEAD = 4
SCRATCH = 8 * 1024  # copying this much costs less than the system call that it saves
LARGE = 16 * 1024  # bytes of a frame that may hold more elements than the event loop should decode at once

_FOREIGN = (
    (b"HTTP", "an HTTP reply: this port belongs to a web server"),
    (b"\x15\x03", "a TLS alert: the port expects TLS: set security_protocol=SSL or SASL_SSL"),
    (b"\x16\x03", "a TLS handshake: the other side speaks TLS, this side does not"),
    (b"SSH-", "an SSH server's greeting"),
    (b"220", "the greeting of a mail or FTP server"),
    (b"-ERR", "an error reply of Redis"),
    (b"AMQP", "an AMQP greeting (RabbitMQ?)"),
    (b"GET ", "an HTTP request"),
    (b"POST", "an HTTP request"),
    (b"PUT ", "an HTTP request"),
    (b"HEAD", "an HTTP request"),
)


def explain_foreign(start: bytes) -> str | None:
    """Return the name of a well-known protocol, not Kafka's, that a stream starts with, if any."""
    for prefix, meaning in _FOREIGN:
        if start.startswith(prefix):
            return meaning
    if len(start) > HEAD and start[1:5] == b"\x00\x00\x00\x0a":
        return "the greeting of a MySQL server"
    return None


class FrameReader:
    """Splits a stream into frames, each passed on as its own `bytearray`.

    `on_frame` is called once per frame, in order, without the 4-byte length; for frames of `LARGE`
    bytes and more `on_large`, if it is given. After a ProtocolViolation the stream has no meaning
    any more: close it.
    """

    __slots__ = (
        "_filled", "_first", "_frame", "_have", "_max_size", "_min_size", "_on_frame", "_on_large", "_scratch",
        "_start", "_view", "_limit_option", "frame_size",
    )  # fmt: skip

    def __init__(
        self,
        on_frame: Callable[[bytearray], None],
        *,
        max_size: int,
        min_size: int = 4,
        limit_option: str = "receive_message_max_bytes",
        on_large: Callable[[bytearray], None] | None = None,
    ) -> None:
        """`limit_option` is the option that sets `max_size`, for errors."""
        self._on_frame = on_frame
        self._on_large = on_frame if on_large is None else on_large
        self._max_size = max_size
        self._limit_option = limit_option
        self._min_size = min_size
        self._scratch = memoryview(bytearray(SCRATCH))
        self._have = 0  # bytes of the scratch buffer that belong to frames not cut yet
        self._start = memoryview(b"")  # the first bytes of a large frame, until its buffer is allocated
        self._frame: bytearray | None = None  # a frame beyond the scratch buffer, being filled
        self._view = memoryview(b"")  # of `_frame`
        self._filled = 0  # bytes of `_frame` that were received
        self.frame_size: int = 0  # bytes of `_frame`; 0 if the frame being read fits into the shared buffer
        self._first = True  # no frame was received: the first bytes reveal a foreign protocol

    @property
    def in_frame(self) -> bool:
        """Whether the stream is in the middle of a frame."""
        return self.frame_size > 0 or self._have > 0

    def redirect(self, on_frame: Callable[[bytearray], None], on_large: Callable[[bytearray], None]) -> None:
        """Pass the next frames to other functions."""
        self._on_frame, self._on_large = on_frame, on_large

    def limit(self, max_size: int, limit_option: str) -> None:
        """Accept frames of up to `max_size` bytes, as set by that option, from now on."""
        self._max_size = max_size
        self._limit_option = limit_option

    def get_buffer(self) -> memoryview:
        """Return the buffer for the next bytes."""
        if self._frame is not None:
            return self._view[self._filled :]
        if self.frame_size:
            return self._allocate()
        return self._scratch[self._have :]

    def buffer_updated(self, count: int) -> None:
        """`count` bytes were written into the result of `get_buffer`.

        Raises: ProtocolViolation: a length that no honest peer sends.
        """
        frame = self._frame
        if frame is None:
            self._have += count
            self._cut()
            return
        self._filled += count
        if self._filled == len(frame):
            self._frame = None
            self._view = memoryview(b"")
            self.frame_size = 0
            (self._on_frame if len(frame) < LARGE else self._on_large)(frame)

    def discard(self) -> None:
        """Free an unfinished frame: the stream has ended."""
        self._frame = None
        self._start = self._view = memoryview(b"")
        self._filled = self._have = self.frame_size = 0

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Feed bytes that were read elsewhere (tests, transports that own their buffers).

        Raises: ProtocolViolation: as `buffer_updated`.
        """
        view = memoryview(data)
        while view:
            target = self.get_buffer()
            count = min(len(target), len(view))
            target[:count] = view[:count]
            self.buffer_updated(count)
            view = view[count:]

    def _cut(self) -> None:
        scratch, have, start = self._scratch, self._have, 0
        while have - start >= HEAD:
            size = int.from_bytes(scratch[start : start + HEAD], "big", signed=True)
            if self._first or size < self._min_size or size > self._max_size:
                self._check(bytes(scratch[start:have]), size)
                self._first = False
            body = start + HEAD
            if body + size > have:
                if size > len(scratch) - HEAD:
                    self._begin(size, scratch[body:have])
                    start = have
                break
            start = body + size
            # Save the position first: the callback may close the stream or raise.
            (self._on_frame if size < LARGE else self._on_large)(bytearray(scratch[body:start]))
        rest = have - start
        if rest and start:
            scratch[:rest] = bytes(scratch[start:have])
        self._have = rest

    def _begin(self, size: int, came: memoryview) -> None:
        """Begin a large frame. The next read allocates its buffer; reading may pause first."""
        self._start = memoryview(bytes(came))
        self.frame_size = size

    def _allocate(self) -> memoryview:
        start, self._start = self._start, memoryview(b"")
        frame = unfilled(self.frame_size)
        frame[: len(start)] = start
        self._frame = frame
        self._view = memoryview(frame)
        self._filled = len(start)
        return self._view[self._filled :]

    def _check(self, start: bytes, size: int) -> None:
        foreign = explain_foreign(start)
        if foreign is not None and (self._first or size > self._max_size):
            raise ProtocolViolation(f"the peer does not speak Kafka's protocol: it sent {start[:16]!r}, {foreign}")
        if size < self._min_size:
            raise ProtocolViolation(
                f"a frame of {size} bytes is shorter than any message (bytes {start[:16].hex(' ')})"
            )
        if size > self._max_size:
            raise ProtocolViolation(
                f"a frame of {size} bytes exceeds the limit of {self._max_size} ({self._limit_option}), "
                f"or the peer does not speak Kafka's protocol (bytes {start[:16].hex(' ')})"
            )
