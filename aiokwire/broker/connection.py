"""The server's side of one connection: frames in, responses out, one request at a time.

Kafka mutes a channel while it handles a request, so that responses leave in the requests' order.
Here a request that waits (long poll, flush) keeps the next ones queued, and the socket is read only
to the end of the next frame. Others get their response within the read event, without a task; a
connection that exceeds its share waits for its turn (`turns`). Each has one driver task, to wait.

    socket -> FrameReader -> queue -> dispatch -> handler --response--> socket
                                                        `-awaitable---> driver --response--> socket
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Awaitable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, cast

import anyio

from aiokwire.broker.dispatch import (
    Answer,
    AnswerAndClose,
    Call,
    CloseConnection,
    FallSilent,
    Origin,
    read_call,
    shorten_messages,
)
from aiokwire.broker.nodes import Endpoint, Node
from aiokwire.broker.security import Usage
from aiokwire.broker.security.authentication import Authenticator
from aiokwire.broker.security.principals import PrincipalMapping
from aiokwire.broker.state import BrokerState
from aiokwire.broker.throttling import count_request, encode_throttled
from aiokwire.broker.turns import REQUEST_COST
from aiokwire.clock import clock_of
from aiokwire.errors import AuthenticationFailed, InvalidArgument, ProtocolViolation
from aiokwire.net import FrameReader, write_scattered
from aiokwire.protocol import ApiKey, Buffer, Response, encode_response

if TYPE_CHECKING:
    from aiokwire.broker.server import Server

logger: logging.Logger = logging.getLogger(__name__)

HEADER = 8  # bytes of the shortest request: API, version, correlation id
JOIN_BELOW = 1 << 16  # bytes; copying fewer is faster than a scatter write
# Requests that wait for other clients, not for the broker's own work: cancelled when their client disconnects.
LONG_POLLS = frozenset({ApiKey.FETCH, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP})
REQUEST_LIMIT = "socket.request.max.bytes"
LOGIN_LIMIT = "sasl.server.max.receive.size"  # before the login
LOGIN_SECONDS = 10.0
FRAME_SECONDS = 30.0  # for a request to arrive, and more if it is large
LEAST_RATE = 1 << 20  # bytes a second
WRITE_AHEAD = 1 << 20  # bytes that may wait for a slow reader before its next request is handled


class ServerConnection(asyncio.BufferedProtocol):
    """One client's connection: reads requests in order, writes their responses in that order."""

    def __init__(self, server: Server, state: BrokerState, node: Node, connection_id: int) -> None:
        self._server = server
        self._state = state
        self._quotas = state.quotas
        self._counts = state.counts
        self.connection_id = connection_id
        security = server.security
        self._authenticator: Authenticator | None = None
        if security.login is not None:
            self._authenticator = Authenticator(security.login, asyncio.get_running_loop().time)
        self._origin = Origin(
            connection_id=connection_id, node=node, listener=security.name, authenticator=self._authenticator
        )
        self._reader = self._new_reader()
        self._queue: deque[bytearray] = deque()  # whole requests, not handled yet
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self.host: str = "?"
        self.peer: str = "?"
        self._pumping = False  # within `_pump`: a frame that arrives now waits in the queue
        self._in_line = False  # waiting for its next turn
        self._turn = -1  # the number of the turn (`Turns`) in which the read event last handled requests
        self._writable = True
        self._reading = True
        self._closed = False  # by the broker: the queue is dropped
        self._gone = False  # the client disconnected: the queue is still handled, because acks=0 expects no response
        # The request that the driver waits for; until it is done no other is handled.
        self._waiting: tuple[Call, Awaitable[Answer]] | None = None
        self._usage: Usage | None = None  # of the request being handled, while there are quotas
        self._muted = False  # the wait is the pause of a throttled connection
        self._scope: anyio.CancelScope | None = None  # around a long poll: cancelled when the client disconnects
        self._wake = anyio.Event()
        self._clock = clock_of(self._loop)
        self._opened = self._clock()
        self.last_used: float = self._opened
        self._frame_size = 0  # bytes of the large request that is being read
        self._held = 0  # bytes of memory taken for large requests
        self._starved = False  # the large request waits for memory
        self._in_frame_since = math.inf  # when `close_if_overdue` first saw the frame that is being read

    def _new_reader(self) -> FrameReader:
        # Tokens without a header may be empty; requests are checked by the authenticator.
        option, least = (REQUEST_LIMIT, HEADER) if self._authenticator is None else (LOGIN_LIMIT, 0)
        most = self._state.configs.integer(option)
        return FrameReader(self._on_frame, max_size=most, min_size=least, limit_option=option)

    @property
    def idle(self) -> bool:
        """Whether no request is queued, being read or handled."""
        return self._waiting is None and not self._queue and not self._reader.in_frame

    # --- the transport's events ---------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=WRITE_AHEAD)
        peer, local = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        if peer:
            self.host, self.peer = peer[0], f"{peer[0]}:{peer[1]}"
        self._origin = self._origin._replace(peer=self.peer, local=Endpoint(local[0], local[1]) if local else None)
        self._server.opened(self)
        mapping = self._server.security.mapping
        if mapping is not None:
            self._identify(mapping, transport.get_extra_info("peercert"))

    def _identify(self, mapping: PrincipalMapping, certificate: Mapping[str, Any] | None) -> None:
        try:
            self._origin = self._origin._replace(principal=mapping.principal_of(certificate))
        except ValueError as error:
            self._fail(f"the client's certificate names no user: {error}")

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        if self._closed or self._gone:
            return
        try:
            self._reader.buffer_updated(nbytes)
        except ProtocolViolation as error:
            self._fail(str(error))
            return
        if self._reader.frame_size != self._frame_size:
            self._take_memory(self._reader.frame_size)
        self._pump()

    def eof_received(self) -> bool:
        return False  # close: the client no longer reads responses

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone = self._writable = True
        self._transport = None
        self._state.unread.discard(self)
        self._state.request_memory.discard(self)
        held, self._held, self._frame_size = self._held, 0, 0
        self._state.request_memory.give_back(held)
        self._reader.discard()  # its buffer, which a reference cycle would keep until a garbage collection
        self._wake.set()
        if self._scope is not None:
            self._scope.cancel()
        self._pump()
        self._server.lost(self)

    def pause_writing(self) -> None:
        self._writable = False
        self._state.unread.add(self)

    def resume_writing(self) -> None:
        self._writable = True
        self._state.unread.discard(self)
        self._pump()

    @property
    def unread(self) -> int:
        """Bytes of responses that the client has not read."""
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    # --- requests in, responses out -----------------------------------------------------------------------------------

    def _on_frame(self, frame: bytearray) -> None:
        self._queue.append(frame)

    @property
    def _is_ready(self) -> bool:
        return bool(self._queue) and self._writable and self._waiting is None and not self._closed

    def _pump(self) -> None:
        """Handle queued requests, up to the connection's share of this turn of the loop."""
        if self._pumping or self._in_line:
            return
        self._pumping = True
        turns = self._server.turns
        share = turns.share_of(self._turn)
        self._turn = turns.number
        try:
            if share > 0:
                turns.spend(self._work(share))
        finally:
            self._pumping = False
        if self._is_ready:
            self._in_line = True
            turns.join(self)
        self._read_while_empty()

    def _work(self, share: int) -> int:
        """Handle requests until their cost reaches `share`; return their cost."""
        queue, cost = self._queue, 0
        while queue and self._writable and self._waiting is None and not self._closed and cost < share:
            frame = queue.popleft()
            cost += REQUEST_COST + (len(frame) >> 3) + self._handle(frame)
        return cost

    def take_turn(self, share: int) -> tuple[int, bool]:
        """Handle requests up to this connection's share of a turn; called by `Turns`."""
        cost = self._work(share)
        self._in_line = self._is_ready
        if not self._in_line:
            self._read_while_empty()
            if self._gone:
                self._wake.set()  # the driver stayed for the queued requests
        return cost, self._in_line

    def _read_while_empty(self) -> None:
        if self._held:
            self._return_memory()
        transport = self._transport
        must_pause = self._starved or bool(self._queue)
        if transport is None or transport.is_closing() or self._reading is not must_pause:
            return
        if self._reading:
            transport.pause_reading()
        else:
            transport.resume_reading()
        self._reading = not self._reading

    def _take_memory(self, size: int) -> None:
        """Take memory for a large request that begins, or stop reading until there is some."""
        self._frame_size = size
        if size:
            self._starved = not self._state.request_memory.take(self, size)
            self._held += 0 if self._starved else size

    def proceed(self) -> None:
        """Read the large request; for `RequestMemory`, which has taken the memory."""
        self._starved = False
        self._held += self._frame_size
        self._read_while_empty()

    def _return_memory(self) -> None:
        if not self._queue and self._waiting is None:
            keep = 0 if self._starved else self._frame_size
            free, self._held = self._held - keep, keep
            self._state.request_memory.give_back(free)

    def _handle(self, frame: bytearray) -> int:
        """Handle a request or leave it to the driver; return the number of bytes encoded."""
        self.last_used = self._clock()
        answered = 0
        if self._quotas.enabled:
            self._usage = Usage(len(frame))
        try:
            if self._authenticator is not None:
                if self._authenticator.reads_tokens:
                    self._wait_for(
                        Call(self._state, api=ApiKey.SASL_AUTHENTICATE, version=0), self._answer_token(frame)
                    )
                    return 0
                self._authenticator.screen(frame)
            call, work = read_call(self._state, frame, self._origin)
            self._counts.received(call.api, len(frame))
            result = work()
            if result is None or isinstance(result, Response):
                answered = self._answer(call, result)
            else:
                self._wait_for(call, result)
        except AnswerAndClose as error:
            self._answer(call, error.response)
            self._fail(str(error))
        except (CloseConnection, ProtocolViolation) as error:
            self._fail(str(error))
        except Exception:
            logger.exception("connection from %s: a request failed in the broker; closing the connection", self.peer)
            self.close()
        return answered

    def _wait_for(self, call: Call, result: Awaitable[Answer]) -> None:
        if self._usage is not None:
            self._usage.wait()
        self._waiting = (call, result)
        self._wake.set()

    async def _answer_token(self, frame: bytearray) -> None:
        """Continue a SASL exchange whose tokens are frames without headers (KIP-43)."""
        assert self._authenticator is not None
        try:
            challenge = await self._authenticator.evaluate(bytes(frame))
        except AuthenticationFailed as error:
            raise CloseConnection(self._authenticator.describe_failure(error)) from error
        if self._transport is not None:
            self._transport.write(len(challenge).to_bytes(4, "big") + challenge)

    def _use_login(self, authenticator: Authenticator) -> None:
        """Handle the next requests for the user who logged in."""
        self._origin = self._origin._replace(principal=authenticator.principal)
        self._reader.limit(self._state.configs.integer(REQUEST_LIMIT), REQUEST_LIMIT)

    def _answer(self, call: Call, response: Answer) -> int:
        """Write a response; return the number of bytes encoded for it, without records."""
        transport = self._transport
        if response is None or transport is None or transport.is_closing():  # a loss is reported one turn later
            if self._usage is not None:
                self._charge(call, self._usage, None, [])
            return 0
        try:
            chunks = encode_response(response, call.version, call.correlation_id)
        except InvalidArgument:  # a text beyond the protocol's 32,767 bytes
            shorten_messages(response)
            chunks = encode_response(response, call.version, call.correlation_id)
        if self._usage is not None:
            chunks = self._charge(call, self._usage, response, chunks)
        size = sum(map(len, chunks))
        self._counts.answered(call.api, response, size)
        if len(chunks) == 1:
            transport.write(chunks[0])
        elif size <= JOIN_BELOW:
            transport.write(b"".join(chunks))
        else:
            write_scattered(transport, chunks, WRITE_AHEAD)
        return len(chunks[0])

    def _charge(self, call: Call, usage: Usage, response: Answer, chunks: list[Buffer]) -> list[Buffer]:
        """Count a request for its client's quotas; return its response. If throttled, mute it."""
        self._usage = None
        throttle_ms = count_request(call, usage, response, sum(map(len, chunks)))
        if throttle_ms == 0 or self._gone:
            return chunks
        self._muted = True
        self._waiting = (call, anyio.sleep(throttle_ms / 1000))
        self._wake.set()
        return encode_throttled(call, response, throttle_ms) or chunks

    async def drive(self) -> None:
        """Wait for requests without an immediate response. Runs in the server's task group."""
        try:
            while True:
                if self._waiting is not None:
                    waiting = self._waiting
                    await self._finish(*waiting)
                    if self._waiting is not waiting:
                        continue  # throttled: the pause comes next
                    self._waiting, self._muted = None, False
                    self.last_used = self._clock()
                    self._pump()
                elif self._closed or (self._gone and not self._queue):
                    return
                else:
                    await self._wake.wait()
                    self._wake = anyio.Event()
        finally:
            if self._waiting is not None and isinstance(self._waiting[1], Coroutine):
                self._waiting[1].close()  # the broker closes before it started

    async def _finish(self, call: Call, awaitable: Awaitable[Answer]) -> None:
        try:
            with anyio.CancelScope() as scope:
                if self._muted or call.api in LONG_POLLS:
                    self._scope = scope
                    if self._gone:
                        scope.cancel()
                self._answer(call, await awaitable)
            if self._authenticator is not None and self._authenticator.is_ready:
                self._use_login(self._authenticator)
        except AnswerAndClose as error:
            self._answer(call, error.response)
            self._fail(str(error))
        except CloseConnection as error:
            self._fail(str(error))
        except FallSilent:
            self._fall_silent()
        except Exception:
            logger.exception("connection from %s: a request failed in the broker; closing the connection", self.peer)
            self.close()
        self._scope = None

    # --- close --------------------------------------------------------------------------------------------------------

    def _fail(self, why: str) -> None:
        self._state.peer_log.warn(self.peer, why)
        self.close()

    def close_if_overdue(self, now: float) -> None:
        """Close the connection if a login, or the end of a request, is overdue."""
        if self._closed:
            return
        if self._authenticator is not None and not self._authenticator.is_ready and now - self._opened > LOGIN_SECONDS:
            self._fail(f"no SASL login within {LOGIN_SECONDS:g} s")
        elif not self._reader.in_frame or not self._reading:
            self._in_frame_since = math.inf
        elif self._in_frame_since == math.inf or self._in_frame_since < self.last_used:
            self._in_frame_since = now
        elif now - self._in_frame_since > FRAME_SECONDS + self._reader.frame_size / LEAST_RATE:
            size = f" of {self._reader.frame_size} bytes" if self._reader.frame_size else ""
            self._fail(f"a request{size} is not complete after {now - self._in_frame_since:.0f} s")

    def abort_unread(self, held: int, limit: int) -> None:
        """Drop the connection, because all slow readers together hold `held` bytes."""
        why = (
            f"{self.unread} bytes of responses unread since {self._clock() - self.last_used:.1f} s, and all slow "
            f"readers hold {held} bytes, more than {limit}; the client may connect again"
        )
        self._state.peer_log.warn(self.peer, why)
        self.abort()

    def _fall_silent(self) -> None:
        """Handle no further request and keep the connection open until the client closes it."""
        self._closed = True
        self._queue.clear()
        self._wake.set()

    def refuse_after(self, seconds: float) -> None:
        """Handle no request, and close after a pause: the address connects too often (KIP-612)."""
        self._fall_silent()
        if self._transport is not None:
            self._transport.pause_reading()
        self._loop.call_later(seconds, self.abort)

    def close(self) -> None:
        """Close once the pending responses are written."""
        self._closed = True
        self._queue.clear()
        self._wake.set()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close at once; unwritten responses are lost."""
        self.close()
        if self._transport is not None:
            self._transport.abort()

    def __repr__(self) -> str:
        return f"<ServerConnection {self.connection_id} from {self.peer}>"
