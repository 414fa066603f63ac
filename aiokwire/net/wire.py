"""One TCP stream to a broker: requests out, responses in. `Connection` opens one (handshake: more).

A socket error, the end of the stream, or a request past its deadline ends a wire: each calls
`fail`, once, which fails every request in flight and notifies the owner.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Literal, TypeVar, overload

from aiokwire.errors import ConnectionFailed, KafkaError, ProtocolViolation, RequestTimedOut
from aiokwire.loop_timer import LoopTimer
from aiokwire.net.dial import describe_os_error
from aiokwire.net.framing import FrameReader
from aiokwire.net.in_flight import InFlight, InFlightQueue, Receiver
from aiokwire.net.writing import join_small, scatters, write_scattered
from aiokwire.protocol import Request, Response, decode_response, encode_request

# Timers may fire early by this (seconds); a deadline this near counts as passed.
TIMER_SLACK = 0.001

Sent = Callable[[str, int, int], None]  # request name, version, bytes
Answered = Callable[[InFlight, int, float, Any], None]  # entry, bytes of the answer, elapsed seconds, the answer

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
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._who = who  # for messages: "node 1 at host:port"
        self._client_id = client_id
        self._write_high_water = write_high_water  # bytes
        self._stall_timeout = stall_timeout  # how long (seconds) writing may make no progress
        self._reader = FrameReader(self._on_frame, max_size=max_frame_size)
        self._queue = InFlightQueue()
        self._transport: asyncio.Transport | None = None
        self._scatters = False  # whether the transport's writelines writes without joining
        self._timer = LoopTimer(self._loop, self._on_timer)  # for the deadlines of requests and of writing
        self._flush_timer: asyncio.TimerHandle | None = None  # set by `fail` while the transport writes out its buffer
        self._paused_at: float | None = None  # the loop's clock, when the transport's buffer became full
        self._writable = asyncio.Event()
        self._gone = asyncio.Event()
        self.last_used = self._loop.time()
        self.error: KafkaError | None = None  # set once, by `fail`
        # Set by the owner when the connection is ready; the first two are called at most once.
        self.on_fail: Callable[[KafkaError], None] | None = None
        self.on_gone: Callable[[], None] | None = None
        self.on_sent: Sent | None = None
        self.on_answer: Answered | None = None

    # --- called by the owner -----------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def paused(self) -> bool:
        """Whether the transport has paused writing."""
        return self._paused_at is not None

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

        Raises: KafkaError: what ended the wire; UnsupportedVersion: the request cannot be written
        in this version.
        """
        future: asyncio.Future[Any] = self._loop.create_future()
        self.send_for(future if expect_response else None, request, version, timeout=timeout, raw=raw)
        if not expect_response:
            future.set_result(None)
        return future

    def send_for(
        self, receiver: Receiver | None, request: Request[Any], version: int, *, timeout: float, raw: bool = False
    ) -> None:
        """Write a request; `receiver` gets its outcome. None: the broker does not respond.

        Raises: as `send`; `receiver` is not called then.
        """
        if self.error is not None:
            raise self._lost(str(self.error)) from self.error
        correlation_id = self._queue.next_id()
        chunks = encode_request(request, version, correlation_id, self._client_id)
        now = self.last_used = self._loop.time()
        if receiver is not None:
            deadline = now + timeout
            response_type = None if raw else request.RESPONSE
            entry = InFlight(correlation_id, type(request).__name__, version, response_type, receiver, now, deadline)
            self._queue.add(entry)
            self._timer.set(deadline)
        if self.on_sent is not None:
            self.on_sent(type(request).__name__, version, sum(map(len, chunks)))
        self._write(chunks)

    async def drained(self) -> None:
        """Wait while the transport's buffer is over its limit.

        Raises: KafkaError: the wire has ended.
        """
        while self._paused_at is not None:
            await self._writable.wait()
        if self.error is not None:
            raise self._lost(str(self.error)) from self.error

    def fail(self, error: KafkaError, *, flush: bool = False) -> None:
        """End the wire; requests in flight get an error each. `flush` still writes the buffer."""
        if self.error is not None:
            return
        self.error = error
        self._timer.cancel()
        now = self._loop.time()
        for entry in self._queue.drain():
            if not entry.receiver.done():
                entry.receiver.set_exception(self._verdict(entry, error, now))
        self._paused_at = None
        self._writable.set()
        if self._transport is None:
            self._gone.set()
        elif flush:
            self._transport.close()
            if self._transport.get_write_buffer_size():  # to a peer that takes nothing it would never be empty
                self._flush_timer = self._loop.call_later(self._stall_timeout, self._transport.abort)
        else:
            self._transport.abort()
        if self.on_fail is not None:
            self.on_fail(error)

    def abort(self) -> None:
        """Drop the transport at once, whatever it still has to write."""
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
        self._transport = transport  # type: ignore[assignment]  # create_connection makes nothing but Transports
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
        self.fail(self._lost(f"the peer closed the connection{where}"))
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.fail(self._lost(describe_os_error(exc) if exc is not None else "the connection is gone"))
        self._timer.cancel()
        if self._flush_timer is not None:
            self._flush_timer.cancel()
            self._flush_timer = None
        self._reader.discard()  # half an answer, which a cycle would keep until a garbage collection
        self._gone.set()
        if self.on_gone is not None:
            self.on_gone()

    def pause_writing(self) -> None:
        self._paused_at = self._loop.time()
        self._writable.clear()
        self._timer.set(self._paused_at + self._stall_timeout)

    def resume_writing(self) -> None:
        self._paused_at = None
        self._writable.set()

    # --- inside ------------------------------------------------------------------------------------------------------

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
        except (OSError, RuntimeError) as error:  # uvloop answers RuntimeError for a closed transport
            self.fail(self._lost(describe_os_error(error)))

    def _on_frame(self, frame: bytearray) -> None:
        if self.error is not None:
            return
        entry = self._queue.take(int.from_bytes(frame[:4], "big", signed=True))
        receiver = entry.receiver
        if receiver.done():  # its caller was cancelled
            return
        now = self.last_used = self._loop.time()
        answer: Any = frame
        if entry.response_type is not None:
            try:
                answer = decode_response(frame, entry.response_type, entry.version)
            except ProtocolViolation as error:
                # The framing still holds: one answer that cannot be read fails one request.
                receiver.set_exception(ProtocolViolation(f"{self._who}: the answer to {entry!r}: {error}"))
                return
        if self.on_answer is not None:
            self.on_answer(entry, len(frame), now - entry.sent_at, answer)
        receiver.set_result(answer)

    def _on_timer(self) -> None:
        now = self._loop.time() + TIMER_SLACK
        late = self._queue.expired(now)
        if late:
            first = late[0]
            waited = now - first.sent_at
            self.fail(
                RequestTimedOut(f"{self._who} did not respond to {first.api} v{first.version} within {waited:.3f} s")
            )
            return
        deadlines = []
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
