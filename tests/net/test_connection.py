"""One connection and a scripted peer: normal operation, and a peer that misbehaves."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import pytest

from aiokwire.errors import ConnectionFailed, KafkaError, ProtocolViolation, RequestTimedOut, UnsupportedVersion
from aiokwire.hooks import Hooks
from aiokwire.net import Address, Connection, ConnectionConfig
from aiokwire.net.states import ConnectionState
from aiokwire.protocol import ApiKey
from aiokwire.protocol.messages import metadata, produce

Script = Callable[[Any], Awaitable[None]]
Serve = Callable[..., AbstractAsyncContextManager[Address]]

ASK = metadata.MetadataRequest(topics=[])


def answer_naming(cluster: str) -> metadata.MetadataResponse:
    return metadata.MetadataResponse(cluster_id=cluster)


async def echo(talk: Any) -> None:
    """Shakes hands, then responds to each Metadata with its correlation id as the cluster's id."""
    await talk.shake_hands()
    while True:
        header, _ = await talk.read()
        await talk.answer(header, answer_naming(str(header.correlation_id)))


async def failures(futures: list[asyncio.Future[Any]]) -> list[BaseException]:
    """The exception of each future, waited for."""
    await asyncio.wait(futures, timeout=5)
    return [error for future in futures if (error := future.exception()) is not None]


async def test_requests_are_pipelined_and_get_responses_in_order(serve: Serve) -> None:
    async with serve(echo) as address:
        connection = Connection(address, node_id=1, client_id="test")
        assert repr(connection) == f"<Connection node 1 at {address} NEW, 0 in flight>"
        await connection.connect()
        futures = [connection.send(ASK) for _ in range(5)]
        assert repr(connection) == f"<Connection node 1 at {address} READY, 5 in flight>"
        ids = [(await future).cluster_id for future in futures]
        assert ids == ["1", "2", "3", "4", "5"]
        assert connection.in_flight == 0
        assert connection.answers == 5
        assert 0 <= connection.latency < 5
        connection.close()
        await connection.wait_closed()
        assert repr(connection) == f"<Connection node 1 at {address} CLOSED, 0 in flight>"
        assert connection.error is None


async def test_the_newest_common_version_is_used(serve: Serve) -> None:
    asked: list[int] = []

    async def script(talk: Any) -> None:
        await talk.shake_hands((ApiKey.API_VERSIONS, 0, 4), (ApiKey.METADATA, 2, 7))
        while True:
            header, _ = await talk.read()
            asked.append(header.api_version)
            await talk.answer(header, answer_naming("c"))

    async with serve(script) as address:
        connection = Connection(address)
        await connection.connect()
        await connection.request(ASK)
        await connection.request(ASK, version=3)
        with pytest.raises(UnsupportedVersion, match="does not support ProduceRequest"):
            connection.send(produce.ProduceRequest())
        assert connection.versions.pick(metadata.MetadataRequest, 4) == 4
        with pytest.raises(UnsupportedVersion, match="supports versions 2 to 7 of MetadataRequest, this client 0 to 1"):
            connection.versions.pick(metadata.MetadataRequest, 1)
        connection.close()
        await connection.wait_closed()
    assert asked == [7, 3]


async def test_dying_in_the_middle_of_a_frame_fails_each_pipelined_request_once(serve: Serve) -> None:
    async def script(talk: Any) -> None:
        await talk.shake_hands()
        headers = [(await talk.read())[0] for _ in range(5)]
        await talk.answer(headers[0], answer_naming("first"))
        talk.writer.write(b"\x00\x00\x01\x00" + headers[1].correlation_id.to_bytes(4, "big") + b"half")
        await talk.writer.drain()
        talk.writer.close()
        await talk.until_closed()

    async with serve(script) as address:
        connection = Connection(address)
        await connection.connect()
        futures = [connection.send(ASK) for _ in range(5)]
        assert (await futures[0]).cluster_id == "first"
        errors = await failures(futures[1:])
        assert [type(error) for error in errors] == [ConnectionFailed] * 4
        assert len(set(map(id, errors))) == 4, "each request has its own error"
        assert "in the middle of an answer" in str(errors[0])
        assert connection.closed
        with pytest.raises(ConnectionFailed, match="not READY"):
            connection.send(ASK)
        await connection.wait_closed()


async def test_a_response_out_of_order_closes_the_connection(serve: Serve) -> None:
    async def script(talk: Any) -> None:
        await talk.shake_hands()
        await talk.read()
        second, _ = await talk.read()
        await talk.answer(second, answer_naming("second"))
        await talk.until_closed()

    async with serve(script) as address:
        connection = Connection(address)
        await connection.connect()
        errors = await failures([connection.send(ASK), connection.send(ASK)])
        assert [type(error) for error in errors] == [ProtocolViolation] * 2
        assert "out of order" in str(errors[0])
        await connection.wait_closed()
        with pytest.raises(ProtocolViolation, match="out of order"):
            connection.send(ASK)


async def test_an_unrequested_response_closes_the_connection(serve: Serve) -> None:
    ready = anyio.Event()

    async def script(talk: Any) -> None:
        await talk.shake_hands()
        await ready.wait()
        talk.writer.write(b"\x00\x00\x00\x04\x00\x00\x00\x63")
        await talk.until_closed()

    async with serve(script) as address:
        connection = Connection(address)
        await connection.connect()
        ready.set()
        await connection.wait_closed()
        assert isinstance(connection.error, ProtocolViolation)


async def test_an_oversized_response_is_rejected_before_it_is_read(serve: Serve) -> None:
    async def script(talk: Any) -> None:
        await talk.shake_hands()
        await talk.read()
        talk.writer.write((2**30).to_bytes(4, "big"))
        await talk.until_closed()

    async with serve(script) as address:
        connection = Connection(address, config=ConnectionConfig(max_frame_size=10_000))
        await connection.connect()
        with pytest.raises(ProtocolViolation, match="receive_message_max_bytes"):
            await connection.request(ASK)
        await connection.wait_closed()


async def test_an_unreadable_response_fails_only_its_request(serve: Serve) -> None:
    async def script(talk: Any) -> None:
        await talk.shake_hands()
        header, _ = await talk.read()
        talk.writer.write(b"\x00\x00\x00\x08" + header.correlation_id.to_bytes(4, "big") + b"\xff\xff\xff\xff")
        header, _ = await talk.read()
        await talk.answer(header, answer_naming("good"))
        await talk.until_closed()

    async with serve(script) as address:
        connection = Connection(address)
        await connection.connect()
        bad, good = connection.send(ASK), connection.send(ASK)
        with pytest.raises(ProtocolViolation, match="MetadataRequest"):
            await bad
        assert (await good).cluster_id == "good"
        connection.close()
        await connection.wait_closed()


async def test_a_request_past_its_deadline_closes_the_connection(serve: Serve) -> None:
    async def script(talk: Any) -> None:
        await talk.shake_hands()
        await talk.until_closed()

    async with serve(script) as address:
        connection = Connection(address)
        await connection.connect()
        patient, hasty = connection.send(ASK, timeout=30), connection.send(ASK, timeout=0.05)
        errors = await failures([patient, hasty])
        assert [type(error) for error in errors] == [ConnectionFailed, RequestTimedOut]
        assert "an earlier request missed its deadline" in str(errors[0])
        assert connection.closed
        await connection.wait_closed()


async def test_a_cancelled_request_keeps_its_place_in_the_order(serve: Serve) -> None:
    asked = anyio.Event()
    resume = anyio.Event()

    async def script(talk: Any) -> None:
        await talk.shake_hands()
        headers = [(await talk.read())[0] for _ in range(2)]
        asked.set()
        await resume.wait()
        for header in headers:
            await talk.answer(header, answer_naming(str(header.correlation_id)))
        await talk.until_closed()

    async with serve(script) as address:
        connection = Connection(address)
        await connection.connect()
        async with anyio.create_task_group() as group:
            group.start_soon(connection.request, ASK)
            await anyio.lowlevel.checkpoint()
            later = connection.send(ASK)
            await asked.wait()
            group.cancel_scope.cancel()
        assert connection.in_flight == 2
        resume.set()
        assert (await later).cluster_id == "2"
        assert connection.in_flight == 0
        assert connection.ready
        connection.close()
        await connection.wait_closed()


async def test_closing_fails_requests_in_flight(serve: Serve) -> None:
    async def script(talk: Any) -> None:
        await talk.shake_hands()
        await talk.until_closed()

    async with serve(script) as address:
        connection = Connection(address)
        await connection.connect()
        waiting = connection.send(ASK)
        connection.close()
        connection.close()
        with pytest.raises(ConnectionFailed, match="this side closed"):
            await waiting
        await connection.wait_closed()
        assert connection.state is ConnectionState.CLOSED


async def test_closing_while_it_connects_ends_the_attempt(serve: Serve) -> None:
    silent = anyio.Event()

    async def script(talk: Any) -> None:
        await talk.read()
        silent.set()
        await talk.until_closed()

    async with serve(script) as address:
        connection = Connection(address)
        async with anyio.create_task_group() as group:

            async def attempt() -> None:
                with pytest.raises(ConnectionFailed, match="closed meanwhile, while waiting for an answer"):
                    await connection.connect()

            group.start_soon(attempt)
            await silent.wait()
            connection.close()
        await connection.wait_closed()
        assert connection.state is ConnectionState.CLOSED


async def test_a_request_without_a_response_is_done_at_once(serve: Serve) -> None:
    seen: list[int] = []
    done = anyio.Event()

    async def script(talk: Any) -> None:
        await talk.shake_hands((ApiKey.API_VERSIONS, 0, 4), (ApiKey.METADATA, 0, 13), (ApiKey.PRODUCE, 3, 8))
        header, _ = await talk.read()
        seen.append(header.api_key)
        header, _ = await talk.read()
        await talk.answer(header, answer_naming("after"))
        done.set()
        await talk.until_closed()

    async with serve(script) as address:
        connection = Connection(address)
        await connection.connect()
        sent = connection.send(produce.ProduceRequest(acks=0, timeout_ms=1), expect_response=False)
        assert sent.done()
        assert connection.in_flight == 0
        assert (await connection.request(ASK)).cluster_id == "after"
        assert seen == [ApiKey.PRODUCE]
        connection.close()
        await connection.wait_closed()


async def test_written_bytes_are_sent_before_a_clean_close(serve: Serve) -> None:
    size = 3_000_000
    received = 0
    closed = anyio.Event()
    resume = anyio.Event()

    async def script(talk: Any) -> None:
        nonlocal received
        await talk.shake_hands((ApiKey.API_VERSIONS, 0, 4), (ApiKey.PRODUCE, 3, 8))
        await resume.wait()
        while data := await talk.reader.read(1 << 20):
            received += len(data)
        closed.set()

    async with serve(script) as address:
        connection = Connection(address)
        await connection.connect()
        for _ in range(5):
            connection.send(big_produce(size), expect_response=False)
        assert connection.write_paused
        connection.close()
        resume.set()
        await closed.wait()
        await connection.wait_closed()
        assert received > 5 * size


def big_produce(size: int) -> produce.ProduceRequest:
    partition = produce.PartitionProduceData(index=0, records=bytes(size))
    topic = produce.TopicProduceData(name="t", partition_data=[partition])
    return produce.ProduceRequest(acks=0, timeout_ms=1, topic_data=[topic])


async def test_a_full_transport_holds_writers_back_until_it_has_room(serve: Serve) -> None:
    resume = anyio.Event()

    async def script(talk: Any) -> None:
        await talk.shake_hands((ApiKey.API_VERSIONS, 0, 4), (ApiKey.PRODUCE, 3, 8))
        await resume.wait()
        await talk.until_closed()

    async with serve(script) as address:
        connection = Connection(address)
        await connection.connect()
        await connection.drained()
        for _ in range(4):
            connection.send(big_produce(4_000_000), expect_response=False)
        with anyio.move_on_after(0) as scope:
            await connection.drained()
        assert scope.cancelled_caught
        resume.set()
        await connection.drained()
        assert not connection.write_paused
        connection.close()
        await connection.wait_closed()


async def test_a_peer_that_reads_no_bytes_is_detected(serve: Serve) -> None:
    over = anyio.Event()

    async def script(talk: Any) -> None:
        await talk.shake_hands((ApiKey.API_VERSIONS, 0, 4), (ApiKey.PRODUCE, 3, 8))
        await over.wait()

    async with serve(script) as address:
        connection = Connection(address, config=ConnectionConfig(request_timeout=0.1))
        await connection.connect()
        for _ in range(5):
            connection.send(big_produce(4_000_000), expect_response=False)
        with pytest.raises(ConnectionFailed, match="accepted no bytes"):
            await connection.drained()
        await connection.wait_closed()
        over.set()


async def test_a_peer_that_takes_no_bytes_does_not_hold_a_closed_connection_open(serve: Serve) -> None:
    over = anyio.Event()

    async def script(talk: Any) -> None:
        await talk.shake_hands((ApiKey.API_VERSIONS, 0, 4), (ApiKey.PRODUCE, 3, 8))
        await over.wait()

    async with serve(script) as address:
        connection = Connection(address, config=ConnectionConfig(request_timeout=0.1))
        await connection.connect()
        for _ in range(5):
            connection.send(big_produce(4_000_000), expect_response=False)
        connection.close()
        with anyio.fail_after(5):
            await connection.wait_closed()
        assert connection.state is ConnectionState.CLOSED
        over.set()


async def test_a_connection_keeps_its_throttle_time(serve: Serve) -> None:
    async def script(talk: Any) -> None:
        await talk.shake_hands()
        header, _ = await talk.read()
        await talk.answer(header, metadata.MetadataResponse(throttle_time_ms=1500))
        await talk.until_closed()

    async with serve(script) as address:
        connection = Connection(address)
        await connection.connect()
        await connection.request(ASK)
        left = connection.throttled_until - asyncio.get_running_loop().time()
        assert 1.0 < left <= 1.5
        connection.close()
        await connection.wait_closed()


class Recorder(Hooks):
    """Records its calls."""

    def __init__(self) -> None:
        self.events: list[tuple[object, ...]] = []

    def on_connect(self, node_id: int | None, address: str, elapsed: float) -> None:
        self.events.append(("connect", node_id))

    def on_disconnect(self, node_id: int | None, address: str, error: Exception | None) -> None:
        self.events.append(("disconnect", node_id, error))

    def on_request_sent(self, node_id: int | None, api: str, version: int, size: int) -> None:
        self.events.append(("sent", node_id, api, version, size > 8))

    def on_response_received(self, node_id: int | None, api: str, version: int, size: int, elapsed: float) -> None:
        self.events.append(("received", node_id, api, version, size > 4))
        raise ValueError("a hook with a fault")


async def test_hooks_see_each_request_and_their_exceptions_do_not_escape(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    hooks = Recorder()
    async with serve(echo) as address:
        connection = Connection(address, node_id=3, hooks=hooks)
        await connection.connect()
        assert (await connection.request(ASK)).cluster_id == "1"
        connection.close()
        await connection.wait_closed()
    assert hooks.events == [
        ("connect", 3),
        ("sent", 3, "MetadataRequest", 13, True),
        ("received", 3, "MetadataRequest", 13, True),
        ("disconnect", 3, None),
    ]
    assert "a hook with a fault" in caplog.text


async def test_the_error_names_a_tls_port(serve: Serve, tls_server: ssl.SSLContext) -> None:
    async with serve(echo, tls=tls_server) as address:
        connection = Connection(address)
        with pytest.raises(KafkaError, match="TLS"):
            await connection.connect()
        await connection.wait_closed()
        assert connection.closed


async def test_the_error_names_a_web_server(serve: Serve) -> None:
    async def script(talk: Any) -> None:
        await talk.reader.read(100)
        talk.writer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
        await talk.writer.drain()
        talk.writer.close()
        await talk.until_closed()

    async with serve(script) as address:
        connection = Connection(address)
        with pytest.raises(ProtocolViolation, match="web server"):
            await connection.connect()
        await connection.wait_closed()
        assert isinstance(connection.error, ProtocolViolation)
