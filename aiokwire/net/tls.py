"""TLS over the transport of a socket, for the client's wires and the embedded broker's connections.

Used instead of the event loops' own TLS, which encrypts all that is written, however slowly the
peer reads, and sends no alert when a handshake fails.

    protocol --write-> backlog -> encrypt -> socket's transport -> peer
    protocol <-buffer_updated- decrypt <- socket's transport <- peer
"""

from __future__ import annotations

import asyncio
import enum
import ssl
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final, cast

from aiokwire.net._buffer import unfilled

RECORD: Final = 16 * 1024  # the most plaintext in one record (RFC 8446)
READ: Final = 256 * 1024  # bytes of one read; with 64 KiB the turns of the loop cost 0.3 CPU seconds more per GB
WRITE: Final = 64 * 1024  # bytes to encrypt for one write; more would not stay in the processor's cache
AHEAD: Final = 128 * 1024  # encrypted bytes that may wait for the socket; what follows waits unencrypted
TURN: Final = 4 * 1024 * 1024  # bytes to encrypt in one turn of the loop: 2 to 4 ms
CLOSE_SECONDS: Final = 2.0  # for the peer to read an alert, or to respond to a close_notify
_LOST: Final = "the peer closed the connection during the TLS handshake"


class Phase(enum.Enum):
    """The phases of a TLS connection, in their order."""

    HANDSHAKE = enum.auto()
    OPEN = enum.auto()
    CLOSING = enum.auto()  # delivers nothing, but writes the backlog


class TlsTransport(asyncio.Transport, asyncio.BufferedProtocol):
    """One TLS connection: the transport of `protocol`, and the protocol of the socket's transport.

    `protocol` gets `connection_made` when the handshake is complete.
    """

    def __init__(
        self,
        protocol: asyncio.BufferedProtocol,
        context: ssl.SSLContext,
        *,
        server_hostname: str | None = None,
        server_side: bool = False,
        session: ssl.SSLSession | None = None,
        keep_session: Callable[[ssl.SSLSession], None] | None = None,
    ) -> None:
        """`server_hostname`: the name that the server's certificate must contain.

        `session` is resumed; `keep_session` is called with the new one when the connection ends.
        """
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self._protocol = protocol
        self._server_side = server_side
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side, server_hostname, session)
        self._keep_session = keep_session
        self._socket: asyncio.Transport | None = None  # the transport of the socket, until it is closed
        self._received = memoryview(unfilled(READ))
        self._phase = Phase.HANDSHAKE
        self._was_open = False  # `protocol` knows this transport
        self._shaken = asyncio.Event()  # the handshake is over; `_error` is set if it failed
        self._error: Exception | None = None  # what ended the connection
        self._backlog: deque[Any] = deque()  # chunks to encrypt
        self._backlog_size = 0  # bytes
        self._high, self._low = RECORD * 4, RECORD  # bytes of the backlog that pause and resume the protocol
        self._is_socket_full = False
        self._is_protocol_paused = False
        self._is_reading_paused = False
        self._is_delivering = False  # the protocol's writes meanwhile are joined
        self._has_written = False  # since the last read, or the last turn of the loop
        self._turn_end: asyncio.Handle | None = None  # encrypts the rest of the last turn
        self._timer: asyncio.TimerHandle | None = None  # ends the wait for the peer

    # --- the handshake ------------------------------------------------------------------------------------------------

    async def shake_hands(self, timeout: float) -> None:
        """Wait until the handshake is complete, at most `timeout` seconds.

        Raises: ssl.SSLError: one side rejects the other; ConnectionResetError: the peer closed the
        connection; ConnectionAbortedError: the timeout; OSError: as the socket reports.
        """
        timer = self._loop.call_later(timeout, self._expire, timeout)
        try:
            await self._shaken.wait()
        except BaseException:  # a cancelled caller does not get this transport, and cannot close it
            self.abort()
            raise
        finally:
            timer.cancel()
        if self._error is not None:
            raise self._error

    def _expire(self, timeout: float) -> None:
        self._error = ConnectionAbortedError(f"the TLS handshake is not complete after {timeout:g} s")
        self.abort()
        self._shaken.set()

    def _shake(self) -> None:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._send()
            return
        except ssl.SSLError as error:
            self._fail(error)
            return
        self._send()
        self._phase = Phase.OPEN
        self._was_open = True
        self._shaken.set()
        self._protocol.connection_made(self)
        self._deliver()

    # --- called by the protocol ---------------------------------------------------------------------------------------

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "ssl_object":
            return self._tls
        if name == "peercert":
            return self._tls.getpeercert()
        return default if self._socket is None else self._socket.get_extra_info(name, default)

    def is_closing(self) -> bool:
        return self._phase is Phase.CLOSING

    def is_reading(self) -> bool:
        return not self._is_reading_paused and not self.is_closing()

    def pause_reading(self) -> None:
        if not self._is_reading_paused and self._socket is not None:
            self._is_reading_paused = True
            self._socket.pause_reading()

    def resume_reading(self) -> None:
        if self._is_reading_paused and self._socket is not None:
            self._is_reading_paused = False
            self._socket.resume_reading()
            if not self._is_delivering and self._phase is Phase.OPEN:
                self._loop.call_soon(self._deliver)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = RECORD * 4 if high is None else high
        self._low = self._high // 4 if low is None else low
        self._control_writing()

    def get_write_buffer_size(self) -> int:
        return self._backlog_size + (0 if self._socket is None else self._socket.get_write_buffer_size())

    def write(self, data: Any) -> None:
        self.writelines((data,))

    def writelines(self, chunks: Iterable[Any]) -> None:
        """Write chunks, which must not change until they are written, as with uvloop."""
        if self._phase is not Phase.OPEN:
            return
        for chunk in chunks:
            self._backlog.append(chunk)
            self._backlog_size += len(chunk)
        if self._is_delivering:
            return
        if self._has_written and self._backlog_size < RECORD:
            self._continue_next_turn()
            return
        self._has_written = True
        self._encrypt()

    def _continue_next_turn(self) -> None:
        if self._turn_end is None:
            self._turn_end = self._loop.call_soon(self._end_turn)

    def _end_turn(self) -> None:
        self._turn_end = None
        self._has_written = False
        self._encrypt()

    def can_write_eof(self) -> bool:
        return False

    def close(self) -> None:
        if self._phase is Phase.OPEN:
            self._phase = Phase.CLOSING
            self.resume_reading()
            self._encrypt()
        elif self._phase is Phase.HANDSHAKE:
            self.abort()

    def abort(self) -> None:
        self._phase = Phase.CLOSING
        if self._socket is not None:
            self._socket.abort()

    # --- called by the socket's transport -----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._socket = cast("asyncio.Transport", transport)
        self._socket.set_write_buffer_limits(high=AHEAD)
        self._shake()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._received

    def buffer_updated(self, nbytes: int) -> None:
        if self._error is not None:
            return  # until the peer has read the alert
        self._incoming.write(self._received[:nbytes])
        self._has_written = False
        if self._phase is Phase.OPEN:
            self._deliver()
        elif self._phase is Phase.HANDSHAKE:
            self._shake()
        elif self._backlog:
            self._incoming.read()  # it is not delivered, and the backlog may take long
        else:
            self._finish()

    def eof_received(self) -> bool:
        if self._phase is Phase.OPEN:
            self._protocol.eof_received()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._phase = Phase.CLOSING
        self._socket = None
        self._backlog.clear()
        self._backlog_size = 0
        for handle in (self._timer, self._turn_end):
            if handle is not None:
                handle.cancel()
        if self._was_open:
            if self._keep_session is not None and self._tls.session is not None:
                self._keep_session(self._tls.session)
            self._protocol.connection_lost(self._error or exc)
        elif self._error is None:
            self._error = exc or ConnectionResetError(_LOST)
        self._shaken.set()

    def pause_writing(self) -> None:
        self._is_socket_full = True

    def resume_writing(self) -> None:
        self._is_socket_full = False
        if self._was_open:
            self._encrypt()

    # --- inside -------------------------------------------------------------------------------------------------------

    def _deliver(self) -> None:
        """Decrypt received bytes into the protocol's buffers until the protocol pauses."""
        self._is_delivering = True
        try:
            while self._phase is Phase.OPEN and not self._is_reading_paused and self._has_received():
                self._read_once()
        except ssl.SSLWantReadError:
            pass  # the end of a record is missing
        except ssl.SSLError as error:
            self._fail(error)
        finally:
            self._is_delivering = False
        if self._phase is Phase.OPEN and (self._backlog or self._outgoing.pending):
            self._encrypt()

    def _has_received(self) -> bool:
        return bool(self._incoming.pending or self._tls.pending())

    def _read_once(self) -> None:
        """Fill the protocol's buffer by as many records as fit.

        Raises: ssl.SSLWantReadError: no record is complete; ssl.SSLError.
        """
        buffer: Any = self._protocol.get_buffer(-1)
        size = len(buffer)
        read: Callable[[int, memoryview], int] = cast("Any", self._tls.read)  # typeshed knows no memoryview
        count = filled = read(size, buffer)
        while count and filled < size and self._incoming.pending:
            try:
                count = read(size - filled, buffer[filled:])
            except ssl.SSLWantReadError:
                break
            filled += count
        if filled:
            self._protocol.buffer_updated(filled)
        if not count and self._phase is Phase.OPEN:  # the peer's close_notify
            self._protocol.eof_received()
            self.close()

    def _encrypt(self) -> None:
        """Encrypt and write the backlog, as far as the socket takes it."""
        if self._socket is None or self._socket.is_closing():
            return
        try:
            until = self._backlog_size - TURN
            while self._backlog and not self._is_socket_full:
                if self._backlog_size <= until:
                    self._continue_next_turn()
                    break
                self._encrypt_one()
                if self._outgoing.pending >= WRITE:
                    self._send()
        except ssl.SSLWantReadError:
            pass  # TLS 1.2 renegotiates
        except ssl.SSLError as error:
            self._fail(error)
            return
        self._send()
        if self._phase is Phase.CLOSING:
            self._finish()
        else:
            self._control_writing()

    def _encrypt_one(self) -> None:
        """Encrypt the start of the first chunk, or several small chunks."""
        backlog = self._backlog
        chunk = backlog[0]
        if len(chunk) < RECORD and len(backlog) > 1:
            chunk = self._join()
        count = self._tls.write(chunk if len(chunk) <= WRITE else memoryview(chunk)[:WRITE])
        self._backlog_size -= count
        if count < len(chunk):
            backlog[0] = memoryview(chunk)[count:]
        else:
            backlog.popleft()

    def _join(self) -> bytes:
        """Join the first chunks of the backlog into one of a record's size; return it."""
        backlog, room = self._backlog, RECORD
        pieces = []
        while backlog and room:
            chunk = backlog.popleft()
            if len(chunk) > room:
                backlog.appendleft(memoryview(chunk)[room:])
                chunk = memoryview(chunk)[:room]
            pieces.append(chunk)
            room -= len(chunk)
        joined = b"".join(pieces)
        backlog.appendleft(joined)
        return joined

    def _send(self) -> None:
        if self._outgoing.pending and self._socket is not None:
            self._socket.write(self._outgoing.read())

    def _finish(self) -> None:
        """Send a close_notify after the backlog; close the socket when the peer has sent its own.

        A peer on uvloop drops what it has not delivered if the socket closes before.
        """
        if self._backlog or self._socket is None:
            return
        if self._timer is None:
            self._timer = self._loop.call_later(CLOSE_SECONDS, self._socket.close)
        try:
            self._tls.unwrap()
        except ssl.SSLWantReadError:
            self._send()
            return
        except ssl.SSLError:
            pass  # the peer's data, which is not delivered
        self._send()
        self._socket.close()

    def _control_writing(self) -> None:
        if self._is_protocol_paused:
            if self._backlog_size <= self._low:
                self._is_protocol_paused = False
                self._protocol.resume_writing()
        elif self._backlog_size > self._high:
            self._is_protocol_paused = True
            self._protocol.pause_writing()

    def _fail(self, error: Exception) -> None:
        """Send the alert that OpenSSL has prepared, if any, and close."""
        if self._phase is Phase.CLOSING or self._socket is None:
            return
        was_open = self._phase is Phase.OPEN
        self._error = error
        self._phase = Phase.CLOSING
        self._backlog.clear()
        self._backlog_size = 0
        self._timer = self._loop.call_later(CLOSE_SECONDS, self._socket.abort)
        self._send()
        if self._server_side and not was_open:
            # A client of TLS 1.3 may have sent requests; to close with unread bytes would drop the alert.
            self._socket.write_eof()
        else:
            self._socket.close()
        self._shaken.set()
