"""One TCP stream to a broker: requests out, responses in. `Connection` opens one (handshake: more).

A socket error, the end of the stream, or a request past its deadline ends a wire: each calls
`fail`, once, which fails every request in flight and notifies the owner.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import math
import ssl
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, TypeVar, overload

from aiokwire.clock import clock_of
from aiokwire.errors import ConnectionFailed, KafkaError, ProtocolViolation, RequestTimedOut
from aiokwire.loop_timer import LoopTimer
from aiokwire.net.dial import describe_os_error
from aiokwire.net.framing import LARGE, FrameReader
from aiokwire.net.in_flight import InFlight, InFlightQueue, Receiver
from aiokwire.net.writing import join_small, scatters, write_scattered
from aiokwire.protocol import Request, Response, decode_response, encode_request, release
from aiokwire.threads import call_in_thread

# Timers may fire early by this (seconds); a deadline this near counts as passed.
TIMER_SLACK = 0.001

# A large response may have one element in its arrays for this many bytes of `receive_message_max_bytes`: each becomes a
# Python object. 100 MiB admit the metadata of 140,000 partitions with three replicas.
BYTES_PER_ELEMENT = 100
FEW_ELEMENTS = 4_000  # are decoded on the loop, within about 10 ms

Decode = Callable[[bytearray, type[Response], int], Any]
Sent = Callable[[str, int, int], None]  # request name, version, bytes
Answered = Callable[[InFlight, int, float, Any], None]  # entry, bytes of the response, elapsed seconds, the response

ResponseT = TypeVar("ResponseT", bound=Response)


class Wire(asyncio.BufferedProtocol):
    """The protocol object of one transport."""

    def __init__(
        self,
        *,
        who: str,
        client_id: str | None,
        max_frame_size: int,
        write_high_water: int,
        stall_timeout: float,
        explain_tls: Callable[[Exception], KafkaError] | None = None,
    ) -> None:
        """`explain_tls`: the transport uses TLS; returns the error that ends the wire."""
        self._loop = asyncio.get_running_loop()
        self._who = who  # for messages: "node 1 at host:port"
        self._client_id = client_id
        self._write_high_water = write_high_water  # bytes
        self._stall_timeout = stall_timeout  # seconds for which writing may make no progress
        self._explain_tls = explain_tls
        self._max_frame_size = max_frame_size
        self._reader = self._new_reader()
        self._queue = InFlightQueue()
        self._hold_from = math.inf  # the loop's clock: requests from then on are held
        self._held: deque[tuple[InFlight | None, list[Any]]] = deque()  # until `release`
        self._held_size = 0  # bytes of the requests in `_held`
        self._is_decoding = False  # a thread decodes the response to the oldest request
        self._behind: deque[bytearray] = deque()  # the frames that arrived meanwhile
        self._unused_since: float | None = None  # `last_used` at `hold`, if nothing was in flight
        self._transport: asyncio.Transport | None = None
        self._scatters = False  # whether the transport's writelines writes without joining
        self._clock = clock_of(self._loop)
        self._timer = LoopTimer(self._loop, self._on_timer)  # for the deadlines of requests and of writing
        self._flush_timer: asyncio.TimerHandle | None = None  # set by `fail` while the transport writes out its buffer
        self._paused_at: float | None = None  # the loop's clock, when the transport's buffer became full
        self._writable = asyncio.Event()
        self._gone = asyncio.Event()
        self.last_used: float = self._clock()
        self.error: KafkaError | None = None  # set once, by `fail`
        # Set by the owner when the connection is ready; the first two are called at most once.
        self.on_fail: Callable[[KafkaError], None] | None = None
        self.on_gone: Callable[[], None] | None = None
        self.on_sent: Sent | None = None
        self.on_answer: Answered | None = None
        self.explain_loss: Callable[[], str] | None = None  # a likely cause when the peer closes; may be empty

    # --- called by the owner -----------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._queue) + len(self._held)

    @property
    def paused(self) -> bool:
        """Whether `drained` would wait."""
        return self._paused_at is not None or self._held_size > self._write_high_water

    @overload
    def send(
        self,
        request: Request[ResponseT],
        version: int,
        *,
        timeout: float,
        expect_response: bool = ...,
        raw: Literal[False] = ...,
    ) -> asyncio.Future[ResponseT]: ...

    @overload
    def send(
        self, request: Request[Any], version: int, *, timeout: float, expect_response: bool = ..., raw: Literal[True]
    ) -> asyncio.Future[bytearray]: ...

    def send(
        self,
        request: Request[Any],
        version: int,
        *,
        timeout: float,
        expect_response: bool = True,
        raw: bool = False,
    ) -> asyncio.Future[Any]:
        """Write a request and return a future of its response, with `raw` of the undecoded frame.

        Raises: KafkaError: the error that ended the wire; UnsupportedVersion: no encoding
        in this version.
        """
        future: asyncio.Future[Any] = self._loop.create_future()
        self.send_for(future if expect_response else None, request, version, timeout=timeout, raw=raw)
        if not expect_response:
            future.set_result(None)
        return future

    def send_for(
        self,
        receiver: Receiver | None,
        request: Request[Any],
        version: int,
        *,
        timeout: float,
        raw: bool = False,
        past_hold: bool = False,
    ) -> None:
        """Write a request; `receiver` gets its outcome. None: the broker does not respond.

        `past_hold`: write it although others are held.

        Raises: as `send`; `receiver` is not called then.
        """
        if self.error is not None:
            raise self._lost(str(self.error)) from self.error
        correlation_id = self._queue.next_id()
        chunks = encode_request(request, version, correlation_id, self._client_id)
        now = self.last_used = self._clock()
        entry = None
        is_held = now >= self._hold_from and not past_hold
        if receiver is not None:
            deadline = now + timeout
            response_type = None if raw else request.RESPONSE
            entry = InFlight(correlation_id, type(request).__name__, version, response_type, receiver, now, deadline)
            if not is_held:
                self._queue.add(entry)
            self._timer.set(deadline)
        if self.on_sent is not None:
            self.on_sent(type(request).__name__, version, sum(map(len, chunks)))
        if is_held:
            self._hold_back(entry, chunks)
        else:
            self._write(chunks)

    def send_token(self, token: bytes, *, timeout: float) -> asyncio.Future[bytearray]:
        """Write a bare SASL token, without a header; return a future of the peer's token.

        For brokers without SaslAuthenticate. No other request may be in flight.

        Raises: KafkaError: the error that ended the wire.
        """
        if self.error is not None:
            raise self._lost(str(self.error)) from self.error
        future: asyncio.Future[bytearray] = self._loop.create_future()
        now = self._clock()
        entry = InFlight(self._queue.next_id(), "a SASL token", 0, None, future, now, now + timeout)
        self._queue.add(entry)
        self._timer.set(entry.deadline)
        self._reader = FrameReader(self._on_token, max_size=self._max_frame_size, min_size=0)
        self._write([len(token).to_bytes(4, "big"), token])
        return future

    def hold_from(self, at: float) -> None:
        """Hold requests from a time of the loop's clock on, encoded and in order."""
        self._hold_from = at

    def hold(self) -> None:
        """Hold further requests until `release`."""
        self._unused_since = None if len(self) else self.last_used
        self._hold_from = 0.0

    def release(self) -> None:
        """Write held requests. An exchange without a request around it does not count as a use."""
        held = self._held
        self._hold_from = math.inf
        if self._unused_since is not None and not held:
            self.last_used = self._unused_since
        while held:  # `fail` empties it
            entry, chunks = held.popleft()
            if entry is None:
                self._write(chunks)
            elif not entry.receiver.done():  # its caller was cancelled: it was never sent
                self._queue.add(entry)
                self._write(chunks)
        self._held_size = 0
        if self._paused_at is None:
            self._writable.set()

    def latest_deadline(self) -> float:
        """Return the loop's time by which all requests in flight have ended; 0 without any."""
        return self._queue.latest_deadline() or 0.0

    async def drained(self) -> None:
        """Wait while the transport's buffer, or the held requests, exceed the limit.

        Raises: KafkaError: the wire has ended.
        """
        while self.paused:
            await self._writable.wait()
        if self.error is not None:
            raise self._lost(str(self.error)) from self.error

    def fail(self, error: KafkaError, *, flush: bool = False) -> None:
        """End the wire; each request in flight fails. `flush` still writes the buffer."""
        if self.error is not None:
            return
        self.error = error
        self._timer.cancel()
        now = self._clock()
        entries = self._queue.drain() + [entry for entry, _ in self._held if entry is not None]
        self._held.clear()
        self._behind.clear()
        for entry in entries:
            if not entry.receiver.done():
                entry.receiver.set_exception(self._verdict(entry, error, now))
        self._paused_at = None
        self._held_size = 0
        self._writable.set()
        if self._transport is None:
            self._gone.set()
        elif flush:
            self._close_when_written(self._transport)
        else:
            self._transport.abort()
        if self.on_fail is not None:
            self.on_fail(error)

    def _close_when_written(self, transport: asyncio.Transport) -> None:
        if transport.get_write_buffer_size():  # a peer that does not read must not keep it open
            self._flush_timer = self._loop.call_later(self._stall_timeout, transport.abort)
        transport.close()

    def abort(self) -> None:
        """Drop the transport at once, with its unwritten bytes."""
        if self._transport is not None:
            self._transport.abort()

    @property
    def gone(self) -> bool:
        """Whether the transport is closed."""
        return self._gone.is_set()

    async def wait_gone(self) -> None:
        """Wait until the transport is closed."""
        await self._gone.wait()

    # --- called by the transport -------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # create_connection only makes Transports
        self._scatters = scatters(transport)
        self._transport.set_write_buffer_limits(high=self._write_high_water)  # type: ignore[union-attr]  # set above

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        if self.error is not None:
            return
        try:
            self._reader.buffer_updated(nbytes)
        except ProtocolViolation as error:
            self.fail(ProtocolViolation(f"{self._who}: {error}"))

    def eof_received(self) -> bool:
        where = " in the middle of an answer" if self._reader.in_frame else ""
        self._on_loss(f"the peer closed the connection{where}")
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        if self.error is None and self._explain_tls is not None and isinstance(exc, ssl.SSLError):
            self.fail(self._explain_tls(exc))  # in TLS 1.3 the peer rejects a certificate after the handshake
        self._on_loss(describe_os_error(exc) if exc is not None else "the connection is gone")
        self._timer.cancel()
        if self._flush_timer is not None:
            self._flush_timer.cancel()
            self._flush_timer = None
        self._reader.discard()  # half a response, which a cycle would keep until a garbage collection
        self._gone.set()
        if self.on_gone is not None:
            self.on_gone()

    def pause_writing(self) -> None:
        if self.error is not None:
            return
        self._paused_at = self._clock()
        self._writable.clear()
        self._timer.set(self._paused_at + self._stall_timeout)

    def resume_writing(self) -> None:
        self._paused_at = None
        if self._held_size <= self._write_high_water:
            self._writable.set()

    # --- inside ------------------------------------------------------------------------------------------------------

    def _new_reader(self) -> FrameReader:
        return FrameReader(self._on_frame, max_size=self._max_frame_size, on_large=self._on_large_frame)

    def _hold_back(self, entry: InFlight | None, chunks: list[Any]) -> None:
        self._held.append((entry, chunks))
        self._held_size += sum(map(len, chunks))
        if self._held_size > self._write_high_water:
            self._writable.clear()

    def _on_token(self, frame: bytearray) -> None:
        self._reader = self._new_reader()
        entries = self._queue.drain()
        if self.error is None and entries and not entries[0].receiver.done():
            entries[0].receiver.set_result(frame)

    def _on_loss(self, reason: str) -> None:
        if self.error is None:
            hint = self.explain_loss() if self.explain_loss is not None else ""
            self.fail(self._lost(f"{reason}{hint}"))

    def _write(self, chunks: list[Any]) -> None:
        transport = self._transport
        assert transport is not None
        try:
            pieces = join_small(chunks)
            if self._scatters and len(pieces) > 1:
                write_scattered(transport, pieces, self._write_high_water)
            else:
                for piece in pieces:
                    transport.write(piece)
        except (OSError, RuntimeError) as error:  # uvloop raises RuntimeError for a closed transport
            self.fail(self._lost(describe_os_error(error)))

    def _on_large_frame(self, frame: bytearray) -> None:
        """Decode a large response, in a thread if it has many elements: Fetch has few."""
        entry = self._queue.oldest()
        if self.error is not None or entry is None or entry.response_type is None or entry.receiver.done():
            self._on_frame(frame)
            return
        decode = partial(decode_response, frame, entry.response_type, entry.version)
        try:
            answer = decode(max_elements=FEW_ELEMENTS)
        except ProtocolViolation:
            self._decode_in_thread(frame, decode)
        else:
            self._on_frame(frame, lambda *_: answer)

    def _decode_in_thread(self, frame: bytearray, decode: Callable[..., Response]) -> None:
        """Decode a response in a thread; the frames behind it wait, and no more are read."""
        most = max(self._max_frame_size // BYTES_PER_ELEMENT, FEW_ELEMENTS)
        self._is_decoding = True
        self._reader.redirect(self._behind.append, self._behind.append)
        assert self._transport is not None
        self._transport.pause_reading()
        work = partial(_decode_bounded, decode, most)
        call_in_thread(work, partial(self._on_decoded, frame), name="aiokwire decoding")

    def _on_decoded(self, frame: bytearray, decoded: concurrent.futures.Future[Any]) -> None:
        """Pass on a response that a thread decoded, then the frames that arrived after it."""
        self._is_decoding = False
        entry = self._queue.oldest()
        if decoded.exception() is None and (entry is None or entry.receiver.done()):
            call_in_thread(partial(_release, decoded.result()), lambda _: None, name="aiokwire releasing")
        if self.error is not None:
            return
        error = decoded.exception()
        if error is not None and not isinstance(error, ProtocolViolation):
            self.fail(self._lost(f"a response of {len(frame)} bytes could not be decoded: {error!r}"))
            return
        try:
            self._on_frame(frame, lambda *_: decoded.result())
            while self._behind and not self._is_decoding:
                behind = self._behind.popleft()
                (self._on_frame if len(behind) < LARGE else self._on_large_frame)(behind)
        except ProtocolViolation as violation:
            self.fail(ProtocolViolation(f"{self._who}: {violation}"))
        if not self._is_decoding and self.error is None:
            self._reader.redirect(self._on_frame, self._on_large_frame)
            assert self._transport is not None
            self._transport.resume_reading()

    def _on_frame(self, frame: bytearray, decode: Decode = decode_response) -> None:
        if self.error is not None:
            return
        entry = self._queue.take(int.from_bytes(frame[:4], "big", signed=True))
        receiver = entry.receiver
        if receiver.done():  # its caller was cancelled
            return
        now = self.last_used = self._clock()
        answer: Any = frame
        if entry.response_type is not None:
            try:
                answer = decode(frame, entry.response_type, entry.version)
            except ProtocolViolation as error:
                # The framing still holds: an unreadable response fails one request.
                receiver.set_exception(ProtocolViolation(f"{self._who}: the response to {entry!r}: {error}"))
                return
        if self.on_answer is not None:
            self.on_answer(entry, len(frame), now - entry.sent_at, answer)
        receiver.set_result(answer)

    def _on_timer(self) -> None:
        now = self._clock() + TIMER_SLACK
        held = [entry for entry, _ in self._held if entry is not None]
        late = self._queue.expired(now) + [entry for entry in held if entry.deadline <= now]
        if late:
            first = late[0]
            waited = now - first.sent_at
            self.fail(
                RequestTimedOut(f"{self._who} did not respond to {first.api} v{first.version} within {waited:.3f} s")
            )
            return
        deadlines = [entry.deadline for entry in held]
        if self._paused_at is not None:
            stalled = self._paused_at + self._stall_timeout
            if stalled <= now:
                self.fail(RequestTimedOut(f"{self._who} accepted no bytes for {self._stall_timeout:.3f} s"))
                return
            deadlines.append(stalled)
        earliest = self._queue.earliest_deadline()
        if earliest is not None:
            deadlines.append(earliest)
        if deadlines:
            self._timer.set(min(deadlines))

    def _verdict(self, entry: InFlight, error: KafkaError, now: float) -> KafkaError:
        """Return the error of one request in flight: its own deadline, or the lost connection."""
        asked = f"{entry.api} v{entry.version} to {self._who}, asked {now - entry.sent_at:.3f} s ago"
        if isinstance(error, RequestTimedOut):
            if entry.deadline <= now + TIMER_SLACK:
                return RequestTimedOut(f"{asked}: no response in time")
            return self._lost(f"{asked}: closed because an earlier request missed its deadline ({error})")
        if isinstance(error, ProtocolViolation):
            return ProtocolViolation(f"{asked}: {error}")
        return self._lost(f"{asked}: {error}")

    def _lost(self, reason: str) -> ConnectionFailed:
        message = reason if self._who in reason else f"{self._who}: {reason}"
        return ConnectionFailed(message, address=self._who, stage="ready")


def _decode_bounded(decode: Callable[..., Response], most: int) -> Response:
    """Decode a large response; in a thread."""
    try:
        return decode(max_elements=most)
    except ProtocolViolation as error:
        raise ProtocolViolation(f"{error} (receive_message_max_bytes admits {most} elements)") from None


def _release(answer: Response) -> None:
    """Free a large response whose request was cancelled; in a thread."""
    names: tuple[str, ...] = answer.__slots__
    for name in names:
        if isinstance(items := getattr(answer, name), list):
            release(items)
