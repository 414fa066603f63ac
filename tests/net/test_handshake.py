"""How a connection learns the versions of brokers old, new and odd."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from aiokwire.error_codes import ErrorCode
from aiokwire.errors import ConnectionFailed, InvalidRequestError, ProtocolViolation, UnsupportedVersion
from aiokwire.net import Address, ApiVersions, Connection, ConnectionConfig
from aiokwire.net.handshake import Offered
from aiokwire.net.states import ConnectionState
from aiokwire.net.wire import Wire
from aiokwire.protocol import ApiKey
from aiokwire.protocol.messages import api_versions, join_group, list_offsets, metadata, produce

Script = Callable[[Any], Awaitable[None]]
Serve = Callable[..., AbstractAsyncContextManager[Address]]

ASK = metadata.MetadataRequest(topics=[])


def offers(*ranges: tuple[int, int, int], error_code: int = 0) -> api_versions.ApiVersionsResponse:
    keys = [api_versions.ApiVersion(api_key=key, min_version=low, max_version=high) for key, low, high in ranges]
    return api_versions.ApiVersionsResponse(error_code=error_code, api_keys=keys)


async def connected(address: Address, **options: Any) -> Connection:
    connection = Connection(address, **options)
    await connection.connect()
    return connection


async def close(connection: Connection) -> None:
    connection.close()
    await connection.wait_closed()


async def hang_up_at_once(talk: Any) -> None:
    await talk.read()
    talk.hang_up()


async def test_api_versions_carries_the_client_software(serve: Serve) -> None:
    received: list[api_versions.ApiVersionsRequest] = []

    async def script(talk: Any) -> None:
        header, request = await talk.read()
        received.append(request)
        assert header.client_id == "me"
        await talk.answer(header, offers((ApiKey.METADATA, 0, 5)))
        await talk.until_closed()

    async with serve(script) as address:
        config = ConnectionConfig(software_name="aiokwire", software_version="9.8.7")
        connection = await connected(address, client_id="me", config=config)
        assert connection.versions.range(ApiKey.METADATA) == Offered(0, 5)
        assert not connection.versions.assumed
        await close(connection)
    assert [(request.client_software_name, request.client_software_version) for request in received] == [
        ("aiokwire", "9.8.7")
    ]


async def test_a_broker_that_does_not_know_the_version_is_asked_in_one_that_it_knows(serve: Serve) -> None:
    asked: list[int] = []

    async def script(talk: Any) -> None:
        header, _ = await talk.read()
        asked.append(header.api_version)
        refusal = offers((ApiKey.API_VERSIONS, 0, 2), error_code=ErrorCode.UNSUPPORTED_VERSION)
        await talk.answer(header, refusal, version=0)
        header, _ = await talk.read()
        asked.append(header.api_version)
        await talk.answer(header, offers((ApiKey.METADATA, 0, 4)))
        await talk.until_closed()

    async with serve(script) as address:
        connection = await connected(address)
        assert connection.versions.range(ApiKey.METADATA) == Offered(0, 4)
        await close(connection)
    assert asked == [4, 2]


async def test_a_refusal_without_a_hint_leads_to_version_0(serve: Serve) -> None:
    asked: list[int] = []

    async def script(talk: Any) -> None:
        header, _ = await talk.read()
        asked.append(header.api_version)
        await talk.answer(header, offers(error_code=ErrorCode.UNSUPPORTED_VERSION), version=0)
        header, _ = await talk.read()
        asked.append(header.api_version)
        await talk.answer(header, offers((ApiKey.METADATA, 0, 4)))
        await talk.until_closed()

    async with serve(script) as address:
        await close(await connected(address))
    assert asked == [4, 0]


async def test_connecting_fails_when_a_broker_refuses_every_version(serve: Serve) -> None:
    async def script(talk: Any) -> None:
        while True:
            header, _ = await talk.read()
            await talk.answer(header, offers(error_code=ErrorCode.UNSUPPORTED_VERSION), version=0)

    async with serve(script) as address:
        with pytest.raises(UnsupportedVersion, match="refuses ApiVersions v0"):
            await connected(address)


async def test_an_error_of_the_broker_is_named(serve: Serve) -> None:
    async def script(talk: Any) -> None:
        header, _ = await talk.read()
        await talk.answer(header, offers(error_code=ErrorCode.INVALID_REQUEST))
        await talk.until_closed()

    async with serve(script) as address:
        with pytest.raises(InvalidRequestError, match="INVALID_REQUEST"):
            await connected(address)


async def test_a_broker_that_resets_at_the_newest_version_gets_the_oldest(serve: Serve) -> None:
    """The next connection starts with the newest version again: none stays at old versions."""
    asked: list[int] = []

    async def resets(talk: Any) -> None:
        header, _ = await talk.read()
        asked.append(header.api_version)
        talk.hang_up()

    async def answers(talk: Any) -> None:
        header, _ = await talk.read()
        asked.append(header.api_version)
        await talk.answer(header, offers((ApiKey.METADATA, 0, 13)))
        await talk.until_closed()

    async with serve(resets, answers) as address:
        first = await connected(address)
        second = await connected(address)
        assert first.versions.range(ApiKey.METADATA) == Offered(0, 13)
        await close(first)
        await close(second)
    assert asked == [4, 0, 4]


async def test_a_broker_without_api_versions_gets_the_oldest_versions(serve: Serve) -> None:
    """Kafka 0.8 closes the connection at an api key that it does not know."""

    async def old(talk: Any) -> None:
        header, request = await talk.read()
        assert isinstance(request, list_offsets.ListOffsetsRequest)
        assert header.api_version == 0
        await talk.answer(header, list_offsets.ListOffsetsResponse())
        header, _ = await talk.read()
        assert (header.api_key, header.api_version) == (ApiKey.METADATA, 0)
        await talk.answer(header, metadata.MetadataResponse())
        await talk.until_closed()

    async with serve(hang_up_at_once, hang_up_at_once, old, hang_up_at_once) as address:
        connection = await connected(address)
        assert connection.versions.assumed
        assert connection.versions.pick(produce.ProduceRequest) == 0
        assert (await connection.request(ASK)).brokers == []
        await close(connection)


async def test_a_broker_behind_a_bad_network_is_not_mistaken_for_an_old_one(serve: Serve) -> None:
    """Two resets, then a response that all brokers send: it is asked for versions again."""

    async def probed(talk: Any) -> None:
        header, _ = await talk.read()
        await talk.answer(header, list_offsets.ListOffsetsResponse())
        await talk.until_closed()

    async def answers(talk: Any) -> None:
        header, _ = await talk.read()
        await talk.answer(header, offers((ApiKey.METADATA, 0, 13)))
        await talk.until_closed()

    async with serve(hang_up_at_once, hang_up_at_once, probed, answers) as address:
        connection = await connected(address)
        assert not connection.versions.assumed
        assert connection.versions.range(ApiKey.METADATA) == Offered(0, 13)
        await close(connection)


async def test_a_broker_that_is_known_to_be_newer_is_never_taken_for_an_old_one(serve: Serve) -> None:
    async with serve(hang_up_at_once) as address:
        connection = Connection(address, may_be_old=False)
        with pytest.raises(ConnectionFailed) as caught:
            await connection.connect()
        assert "ListOffsetsRequest" not in str(caught.value)
        await connection.wait_closed()


async def test_a_port_that_always_hangs_up_is_not_taken_for_an_old_broker(serve: Serve) -> None:
    async with serve(hang_up_at_once) as address:
        connection = Connection(address)
        with pytest.raises(ConnectionFailed, match="hangs up on ApiVersionsRequest v4") as caught:
            await connection.connect()
        assert "ListOffsetsRequest v0" in str(caught.value)
        assert str(address) in str(caught.value)
        await connection.wait_closed()
        assert connection.closed


async def test_the_setup_timeout_names_the_pending_step(serve: Serve) -> None:
    async def script(talk: Any) -> None:
        await talk.until_closed()

    async with serve(script) as address:
        connection = Connection(address)
        with pytest.raises(ConnectionFailed, match="waiting for an answer to ApiVersionsRequest v4") as caught:
            await connection.connect(0.05)
        assert caught.value.stage == "handshake"
        await connection.wait_closed()
        assert connection.state is ConnectionState.CLOSED


async def test_later_exchanges_run_in_order_before_the_connection_is_ready(serve: Serve) -> None:
    ran: list[str] = []

    class Step:
        def __init__(self, name: str) -> None:
            self.name = name

        async def run(self, wire: Wire, versions: ApiVersions, timeout: float) -> None:
            answer = await wire.send(ASK, versions.pick(metadata.MetadataRequest), timeout=timeout)
            ran.append(f"{self.name} {answer.cluster_id}")

    async def script(talk: Any) -> None:
        await talk.shake_hands()
        for name in ("one", "two"):
            header, _ = await talk.read()
            await talk.answer(header, metadata.MetadataResponse(cluster_id=name))
        await talk.until_closed()

    async with serve(script) as address:
        connection = await connected(address, handshake=(Step("first"), Step("second")))
        assert ran == ["first one", "second two"]
        await close(connection)


async def test_a_failing_exchange_leaves_nothing_open(serve: Serve) -> None:
    class Step:
        name = "step"

        async def run(self, wire: Wire, versions: ApiVersions, timeout: float) -> None:
            raise ConnectionFailed("no")

    async def script(talk: Any) -> None:
        await talk.shake_hands()
        await talk.until_closed()

    async with serve(script) as address:
        connection = Connection(address, handshake=(Step(),))
        with pytest.raises(ConnectionFailed, match="no"):
            await connection.connect()
        await connection.wait_closed()
        assert connection.state is ConnectionState.CLOSED


@pytest.mark.parametrize("awaits", range(12))
async def test_cancelled_at_any_await_connect_leaves_nothing_open(serve: Serve, awaits: int) -> None:
    """The attempt is cancelled after `awaits` turns of the loop, at any stage."""
    hung_up = asyncio.Event()

    async def script(talk: Any) -> None:
        try:
            await talk.shake_hands()
            await talk.until_closed()
        finally:
            hung_up.set()

    async with serve(script) as address:
        connection = Connection(address)
        task = asyncio.get_running_loop().create_task(connection.connect())
        for _ in range(awaits):
            if not task.done():
                await asyncio.sleep(0)  # noqa: TID251 - one turn of the loop, no time
        task.cancel()
        await asyncio.wait([task])
        if task.cancelled():
            assert connection.closed or connection.state is ConnectionState.NEW
        else:
            assert connection.ready
        await close(connection)
        assert connection.state is ConnectionState.CLOSED


def test_the_error_without_a_common_version_names_both_ranges() -> None:
    versions = ApiVersions({ApiKey.METADATA: Offered(90, 99)}, who="node 1")
    with pytest.raises(UnsupportedVersion, match="supports versions 90 to 99 of MetadataRequest, this client 0 to 13"):
        versions.pick(metadata.MetadataRequest)


def test_unstable_versions_are_not_used_by_themselves() -> None:
    versions = ApiVersions({key: Offered(0, 99) for key in ApiKey}, who="node 1")
    newest = versions.pick(join_group.JoinGroupRequest)
    unstable = join_group.JoinGroupRequest.UNSTABLE_FROM
    assert newest == (join_group.JoinGroupRequest.VERSIONS.max if unstable is None else unstable - 1)


async def test_versions_of_millions_of_apis_are_refused(serve: Serve) -> None:
    async def script(talk: Any) -> None:
        header, _ = await talk.read()
        answer = header.correlation_id.to_bytes(4, "big") + b"\0\0" + b"\x81\x89\x7a" + bytes(3_000_000)
        talk.writer.write(len(answer).to_bytes(4, "big") + answer)
        await talk.until_closed()

    async with serve(script) as address:
        with pytest.raises(ProtocolViolation, match="array of 2000000 elements"):
            await connected(address)
