"""The login by SASL: the exchange, the texts of errors, and the renewal of sessions."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokwire.async_library import start_soon
from aiokwire.cluster import ClientConfig
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import AuthenticationFailed, ConnectionFailed, ProtocolViolation, RequestTimedOut
from aiokwire.net import Address, Connection, ConnectionConfig
from aiokwire.net.authentication import margin_of
from aiokwire.net.states import ConnectionState
from aiokwire.protocol import ApiKey
from aiokwire.protocol.messages import metadata, produce, sasl_authenticate, sasl_handshake
from aiokwire.security import ClientSecurity, SaslClient, ScramServer, Secret, scram_credential

Serve = Callable[..., AbstractAsyncContextManager[Address]]

ASK = metadata.MetadataRequest(topics=[])
ALL = ((ApiKey.API_VERSIONS, 0, 4), (ApiKey.METADATA, 0, 13), (ApiKey.PRODUCE, 3, 8))
MODERN = (*ALL, (ApiKey.SASL_HANDSHAKE, 0, 1), (ApiKey.SASL_AUTHENTICATE, 0, 2))
OLD = (*ALL, (ApiKey.SASL_HANDSHAKE, 0, 0))
PLAIN = b"\0alice\0secret"


def security_of(**options: Any) -> ClientSecurity:
    given = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "alice",
        "sasl_plain_password": "secret",
        **options,
    }
    return ClientSecurity(ClientConfig(**given))


@asynccontextmanager
async def secured(
    address: Address,
    *,
    security: Any = None,
    config: ConnectionConfig | None = None,
    connects: bool = True,
    rng: random.Random | None = None,
) -> AsyncIterator[Connection]:
    """A connection with SASL, whose background tasks run in a group of the test."""
    async with anyio.create_task_group() as group:
        given = security or security_of()
        connection = Connection(
            address, security=given, spawn=partial(start_soon, group), client_id="me", config=config, rng=rng
        )
        try:
            if connects:
                await connection.connect()
            yield connection
        finally:
            connection.close()
            await connection.wait_closed()
            group.cancel_scope.cancel()


async def log_in(talk: Any, *, lifetime_ms: int = 0) -> list[bytes]:
    """Serve one exchange of PLAIN; return what was sent."""
    header, request = await talk.read()
    assert isinstance(request, sasl_handshake.SaslHandshakeRequest)
    await talk.answer(header, sasl_handshake.SaslHandshakeResponse(mechanisms=["PLAIN"]))
    header, request = await talk.read()
    assert isinstance(request, sasl_authenticate.SaslAuthenticateRequest)
    await talk.answer(header, sasl_authenticate.SaslAuthenticateResponse(session_lifetime_ms=lifetime_ms))
    return [header.api_version, request.auth_bytes]


async def echo(talk: Any) -> None:
    """Respond to each Metadata with its correlation id as the cluster's id."""
    while True:
        header, _ = await talk.read()
        await talk.answer(header, metadata.MetadataResponse(cluster_id=str(header.correlation_id)))


# --- the exchange -----------------------------------------------------------------------------------------------------


async def test_a_login_comes_after_api_versions_and_before_the_first_request(serve: Serve) -> None:
    seen: list[Any] = []

    async def script(talk: Any) -> None:
        await talk.shake_hands(*MODERN)
        seen.extend(await log_in(talk))
        await echo(talk)

    async with serve(script) as address, secured(address) as connection:
        assert (await connection.request(ASK)).cluster_id == "3"
    assert seen == [2, PLAIN]


async def test_scram_takes_several_rounds_and_checks_the_broker(serve: Serve) -> None:
    credential = scram_credential("SCRAM-SHA-256", Secret("secret"))
    challenges: list[bytes] = []

    async def script(talk: Any) -> None:
        await talk.shake_hands(*MODERN)
        header, request = await talk.read()
        assert request.mechanism == "SCRAM-SHA-256"
        await talk.answer(header, sasl_handshake.SaslHandshakeResponse(mechanisms=["SCRAM-SHA-256"]))
        server = ScramServer("SCRAM-SHA-256", lambda user: credential if user == "alice" else None)
        while not server.is_complete:
            header, request = await talk.read()
            challenges.append(await server.evaluate_response(request.auth_bytes))
            await talk.answer(header, sasl_authenticate.SaslAuthenticateResponse(auth_bytes=challenges[-1]))
        await echo(talk)

    security = security_of(sasl_mechanism="SCRAM-SHA-256")
    async with serve(script) as address, secured(address, security=security) as connection:
        assert connection.ready
    assert len(challenges) == 2


async def test_a_broker_before_1_0_gets_the_tokens_as_bare_frames(serve: Serve) -> None:
    received: list[bytes] = []

    async def script(talk: Any) -> None:
        await talk.shake_hands(*OLD)
        header, _ = await talk.read()
        assert header.api_version == 0
        await talk.answer(header, sasl_handshake.SaslHandshakeResponse(mechanisms=["PLAIN"]))
        size = int.from_bytes(await talk.reader.readexactly(4), "big")
        received.append(await talk.reader.readexactly(size))
        talk.writer.write(bytes(4))  # an empty token
        await echo(talk)

    async with serve(script) as address, secured(address) as connection:
        assert (await connection.request(ASK)).cluster_id is not None
    assert received == [PLAIN]


async def test_a_broker_before_1_0_refuses_credentials_by_closing_the_connection(serve: Serve) -> None:
    async def script(talk: Any) -> None:
        await talk.shake_hands(*OLD)
        header, _ = await talk.read()
        await talk.answer(header, sasl_handshake.SaslHandshakeResponse(mechanisms=["PLAIN"]))
        await talk.reader.readexactly(4)
        talk.hang_up()

    async with serve(script) as address, secured(address, connects=False) as connection:
        with pytest.raises(AuthenticationFailed, match=r"brokers before 1\.0 do when they refuse.*sasl_plain_password"):
            await connection.connect()


# --- the texts of errors ----------------------------------------------------------------------------------------------


async def test_a_mechanism_that_is_not_offered_leads_to_the_list_of_those_that_are(serve: Serve) -> None:
    async def script(talk: Any) -> None:
        await talk.shake_hands(*MODERN)
        header, _ = await talk.read()
        code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
        answer = sasl_handshake.SaslHandshakeResponse(error_code=code, mechanisms=["SCRAM-SHA-512", "GSSAPI"])
        await talk.answer(header, answer)
        await talk.until_closed()

    async with serve(script) as address, secured(address, connects=False) as connection:
        text = "does not offer PLAIN, but GSSAPI, SCRAM-SHA-512: set sasl_mechanism"
        with pytest.raises(AuthenticationFailed, match=text) as caught:
            await connection.connect()
        assert caught.value.address == str(address)
        assert connection.error is caught.value


async def test_a_wrong_password_is_reported_with_the_brokers_message(serve: Serve) -> None:
    async def script(talk: Any) -> None:
        await talk.shake_hands(*MODERN)
        header, _ = await talk.read()
        await talk.answer(header, sasl_handshake.SaslHandshakeResponse(mechanisms=["PLAIN"]))
        header, _ = await talk.read()
        code = ErrorCode.SASL_AUTHENTICATION_FAILED
        answer = sasl_authenticate.SaslAuthenticateResponse(error_code=code, error_message="Invalid \x1b[31mpassword")
        await talk.answer(header, answer)
        await talk.until_closed()

    async with serve(script) as address, secured(address, connects=False) as connection:
        with pytest.raises(AuthenticationFailed) as caught:
            await connection.connect()
        text = str(caught.value)
        assert "login by PLAIN failed: Invalid" in text
        assert "check sasl_plain_username and sasl_plain_password" in text
        assert "\x1b" not in text
        assert "secret" not in text
        await connection.wait_closed()
        assert connection.state is ConnectionState.CLOSED


async def test_a_login_at_a_port_without_sasl_is_explained(serve: Serve) -> None:
    async def without(talk: Any) -> None:
        await talk.shake_hands(*ALL)
        await talk.until_closed()

    async def in_another_state(talk: Any) -> None:
        await talk.shake_hands(*MODERN)
        header, _ = await talk.read()
        await talk.answer(header, sasl_handshake.SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE))
        await talk.until_closed()

    for script in (without, in_another_state):
        async with serve(script) as address, secured(address, connects=False) as connection:
            with pytest.raises(AuthenticationFailed, match="set security_protocol to PLAINTEXT or SSL"):
                await connection.connect()


async def test_a_port_that_requires_a_login_is_the_likely_cause_of_a_hang_up(serve: Serve) -> None:
    """Kafka responds to ApiVersions at its SASL port, and hangs up at the next request."""

    async def script(talk: Any) -> None:
        await talk.shake_hands()
        await talk.read()
        talk.hang_up()

    async with serve(script) as address:
        connection = Connection(address)
        await connection.connect()
        with pytest.raises(ConnectionFailed, match=r"may require a login .set security_protocol=SASL_PLAINTEXT"):
            await connection.request(ASK)
        await connection.wait_closed()


async def test_a_hang_up_after_a_response_has_no_hint_of_a_login(serve: Serve) -> None:
    async def script(talk: Any) -> None:
        await talk.shake_hands()
        header, _ = await talk.read()
        await talk.answer(header, metadata.MetadataResponse())
        await talk.read()
        talk.hang_up()

    async with serve(script) as address:
        connection = Connection(address)
        await connection.connect()
        await connection.request(ASK)
        with pytest.raises(ConnectionFailed) as caught:
            await connection.request(ASK)
        assert "login" not in str(caught.value)
        await connection.wait_closed()


async def test_a_silent_broker_ends_the_login_by_the_setup_timeout(serve: Serve) -> None:
    async def script(talk: Any) -> None:
        await talk.shake_hands(*MODERN)
        await talk.until_closed()

    async with serve(script) as address, secured(address, connects=False) as connection:
        with pytest.raises(ConnectionFailed, match="waiting for the SASL login") as caught:
            await connection.connect(0.1)
        assert caught.value.stage == "sasl"


async def test_credentials_that_cannot_be_obtained_do_not_end_the_client(serve: Serve) -> None:
    async def script(talk: Any) -> None:
        await talk.shake_hands(*MODERN)
        await talk.until_closed()

    class Broken:
        uses_tls, uses_sasl = False, True

        async def new_sasl_client(self, host: str) -> SaslClient:
            raise LookupError("the vault is sealed")

        def on_refused(self) -> None:
            pass

    async with serve(script) as address, secured(address, security=Broken(), connects=False) as connection:
        with pytest.raises(ConnectionFailed, match=r"credentials could not be used.*vault is sealed") as caught:
            await connection.connect()
        assert caught.value.stage == "sasl"


# --- the renewal of sessions ------------------------------------------------------------------------------------------


class Early(random.Random):
    """Renews sessions at an early part of their lifetime."""

    def __init__(self, part: float) -> None:
        super().__init__()
        self._part = part

    def uniform(self, a: float, b: float) -> float:
        return 1 - self._part


class Renewing:
    """Serves a login, then Metadata, and passes each renewal to the test."""

    def __init__(self, lifetime_ms: int = 100) -> None:
        self.lifetime_ms = lifetime_ms
        self.asked = anyio.Event()  # a renewal began
        self.proceed = anyio.Event()  # the test lets it continue
        self.order: list[str] = []

    async def __call__(self, talk: Any) -> None:
        await talk.shake_hands(*MODERN)
        await log_in(talk, lifetime_ms=self.lifetime_ms)
        while True:
            header, request = await talk.read()
            self.order.append(type(request).__name__)
            if isinstance(request, sasl_handshake.SaslHandshakeRequest):
                self.asked.set()
                await self.proceed.wait()
                await talk.answer(header, sasl_handshake.SaslHandshakeResponse(mechanisms=["PLAIN"]))
            elif isinstance(request, sasl_authenticate.SaslAuthenticateRequest):
                await self.authenticate(talk, header)
            elif isinstance(request, metadata.MetadataRequest):
                await talk.answer(header, metadata.MetadataResponse(cluster_id=str(header.correlation_id)))

    async def authenticate(self, talk: Any, header: Any) -> None:
        await talk.answer(header, sasl_authenticate.SaslAuthenticateResponse(session_lifetime_ms=0))


async def test_a_session_is_renewed_before_it_ends_and_nothing_fails(serve: Serve) -> None:
    peer = Renewing()
    async with serve(peer) as address, secured(address) as connection:
        before = connection.send(ASK)
        await peer.asked.wait()
        held = [connection.send(ASK) for _ in range(3)]
        assert connection.in_flight >= 3
        assert not any(future.done() for future in held)
        peer.proceed.set()
        answers = [(await future).cluster_id for future in [before, *held]]
        assert len(set(answers)) == 4
        assert connection.ready
        assert (await connection.request(ASK)).cluster_id
    assert peer.order == [
        "MetadataRequest",
        "SaslHandshakeRequest",
        "SaslAuthenticateRequest",
        *["MetadataRequest"] * 4,
    ]


async def test_sessions_are_renewed_again_and_again(serve: Serve) -> None:
    class Again(Renewing):
        count = 0

        async def authenticate(self, talk: Any, header: Any) -> None:
            self.count += 1
            lifetime = self.lifetime_ms if self.count < 3 else 0
            await talk.answer(header, sasl_authenticate.SaslAuthenticateResponse(session_lifetime_ms=lifetime))
            if not lifetime:
                done.set()

    done = anyio.Event()
    peer = Again(lifetime_ms=20)
    peer.proceed.set()
    async with serve(peer) as address, secured(address) as connection:
        with anyio.fail_after(10):
            await done.wait()
        assert connection.ready


async def test_requests_in_flight_complete_before_a_renewal(serve: Serve) -> None:
    """A long poll holds the login back; the broker begins it although the session has ended."""
    release = anyio.Event()

    async def script(talk: Any) -> None:
        await talk.shake_hands(*MODERN)
        await log_in(talk, lifetime_ms=30)
        header, request = await talk.read()
        order.append(type(request).__name__)
        asked.set()
        await release.wait()
        await talk.answer(header, metadata.MetadataResponse(cluster_id="slow"))
        await log_in(talk)
        await echo(talk)

    order: list[str] = []
    asked = anyio.Event()
    async with serve(script) as address, secured(address) as connection:
        slow = connection.send(ASK)
        await asked.wait()
        with anyio.fail_after(10):
            while connection.in_flight < 2:  # the login waits behind it
                await anyio.lowlevel.checkpoint()
        later = connection.send(ASK)
        release.set()
        assert (await slow).cluster_id == "slow"
        assert (await later).cluster_id
        assert connection.ready


async def test_a_loop_that_was_blocked_sends_nothing_in_a_session_that_has_ended(serve: Serve) -> None:
    """Requests that are sent before the late timer runs wait for the renewal."""
    peer = Renewing(lifetime_ms=300)
    peer.proceed.set()
    async with serve(peer) as address, secured(address) as connection:
        end = asyncio.get_running_loop().time() + 0.4
        while asyncio.get_running_loop().time() < end:  # a handler that blocks the loop
            pass
        late = connection.send(ASK)
        assert (await late).cluster_id
    assert peer.order[:3] == ["SaslHandshakeRequest", "SaslAuthenticateRequest", "MetadataRequest"]


async def test_many_held_requests_make_writers_wait(serve: Serve) -> None:
    peer = Renewing()
    config = ConnectionConfig(write_high_water=10_000)
    async with serve(peer) as address, secured(address, config=config) as connection:
        await peer.asked.wait()
        partition = produce.PartitionProduceData(index=0, records=bytes(20_000))
        request = produce.ProduceRequest(
            acks=0, timeout_ms=1, topic_data=[produce.TopicProduceData(name="t", partition_data=[partition])]
        )
        connection.send(request, expect_response=False)
        assert connection.write_paused
        with anyio.move_on_after(0.05) as scope:
            await connection.drained()
        assert scope.cancelled_caught
        peer.proceed.set()
        with anyio.fail_after(10):
            await connection.drained()
        assert (await connection.request(ASK)).cluster_id
    assert "ProduceRequest" in peer.order


async def test_a_held_request_that_is_cancelled_is_not_sent(serve: Serve) -> None:
    peer = Renewing()
    async with serve(peer) as address, secured(address) as connection:
        await peer.asked.wait()
        cancelled, kept = connection.send(ASK), connection.send(ASK)
        cancelled.cancel()
        peer.proceed.set()
        assert (await kept).cluster_id
        assert peer.order.count("MetadataRequest") == 1


async def test_the_deadline_of_a_held_request_counts_from_its_send(serve: Serve) -> None:
    peer = Renewing()
    async with serve(peer) as address, secured(address) as connection:
        await peer.asked.wait()
        held = connection.send(ASK, timeout=0.05)
        with pytest.raises(RequestTimedOut):
            await held
        assert connection.closed


async def test_closing_during_a_renewal_fails_held_requests(serve: Serve) -> None:
    peer = Renewing()
    async with serve(peer) as address, secured(address) as connection:
        await peer.asked.wait()
        held = connection.send(ASK)
        connection.close()
        with pytest.raises(ConnectionFailed, match="this side closed"):
            await held
        await connection.wait_closed()
        assert connection.error is None


async def test_a_renewal_with_another_principal_is_refused_and_only_the_connection_ends(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    """The next connection logs in as the new principal, so requests may be repeated there."""

    class Refusing(Renewing):
        async def authenticate(self, talk: Any, header: Any) -> None:
            code = ErrorCode.SASL_AUTHENTICATION_FAILED
            text = "Cannot change principals during re-authentication"
            await talk.answer(header, sasl_authenticate.SaslAuthenticateResponse(error_code=code, error_message=text))

    peer = Refusing()
    peer.proceed.set()
    async with serve(peer) as address, secured(address) as connection:
        await peer.asked.wait()
        held = connection.send(ASK)
        with pytest.raises(ConnectionFailed, match="Cannot change principals"):
            await held
        await connection.wait_closed()
        assert isinstance(connection.error, AuthenticationFailed)
    lines = [record.getMessage() for record in caplog.records if "was not renewed" in record.getMessage()]
    assert len(lines) == 1
    assert "'me'" in lines[0]


async def test_nonsense_during_a_renewal_closes_the_connection(serve: Serve) -> None:
    class Nonsense(Renewing):
        async def authenticate(self, talk: Any, header: Any) -> None:
            talk.writer.write(b"\x00\x00\x00\x08" + (header.correlation_id + 7).to_bytes(4, "big") + bytes(4))

    peer = Nonsense()
    peer.proceed.set()
    async with serve(peer) as address, secured(address) as connection:
        await connection.wait_closed()
        assert isinstance(connection.error, ProtocolViolation)


async def test_an_unused_connection_stays_unused_when_its_session_is_renewed(serve: Serve) -> None:
    done = anyio.Event()

    class Noting(Renewing):
        async def authenticate(self, talk: Any, header: Any) -> None:
            await super().authenticate(talk, header)
            done.set()

    peer = Noting()
    peer.proceed.set()
    async with serve(peer) as address, secured(address) as connection:
        used = connection.last_used
        await done.wait()
        with anyio.fail_after(5):
            while connection.in_flight:
                await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        assert connection.last_used == used


async def test_credentials_are_renewed_before_requests_are_held(serve: Serve) -> None:
    """A slow source of credentials delays no request."""
    asked, proceed = anyio.Event(), anyio.Event()
    real = security_of()

    class Slow:
        uses_tls, uses_sasl = False, True
        count = 0

        async def new_sasl_client(self, host: str) -> SaslClient:
            self.count += 1
            if self.count == 2:
                asked.set()
                await proceed.wait()
            if self.count == 3:
                raise ConnectionFailed("the token endpoint is down")
            return await real.new_sasl_client(host)

        def on_refused(self) -> None:
            pass

    peer = Renewing(lifetime_ms=30_000)
    peer.proceed.set()
    async with serve(peer) as address, secured(address, security=Slow(), rng=Early(0.01)) as connection:
        with anyio.fail_after(10):
            await asked.wait()
            assert (await connection.request(ASK)).cluster_id
            assert "SaslHandshakeRequest" not in peer.order
            proceed.set()
            await peer.asked.wait()
        assert (await connection.request(ASK)).cluster_id


async def test_credentials_that_stay_unavailable_close_the_connection_when_the_session_ends(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    real = security_of()

    class Down:
        uses_tls, uses_sasl = False, True
        count = 0

        async def new_sasl_client(self, host: str) -> SaslClient:
            self.count += 1
            if self.count > 1:
                raise ConnectionFailed("the token endpoint is down")
            return await real.new_sasl_client(host)

        def on_refused(self) -> None:
            pass

    peer = Renewing(lifetime_ms=500)
    async with serve(peer) as address, secured(address, security=Down(), rng=Early(0.1)) as connection:
        with anyio.fail_after(10):
            await connection.wait_closed()
        assert "token endpoint is down" in str(connection.error)
    assert len([record for record in caplog.records if "; retrying: " in record.getMessage()]) == 1


@pytest.mark.parametrize("turns", range(0, 30, 3))
async def test_cancelled_at_any_turn_a_login_leaves_nothing_open(serve: Serve, turns: int) -> None:
    async def script(talk: Any) -> None:
        await talk.shake_hands(*MODERN)
        await log_in(talk)
        await talk.until_closed()

    async with serve(script) as address:
        connection = Connection(address, security=security_of())
        task = asyncio.get_running_loop().create_task(connection.connect())
        for _ in range(turns):
            if not task.done():
                await asyncio.sleep(0)  # noqa: TID251 - one turn of the loop, no time
        task.cancel()
        await asyncio.wait([task])
        connection.close()
        await connection.wait_closed()
        assert connection.state is ConnectionState.CLOSED


@given(lifetime=st.floats(0.01, 1e6), seed=st.integers(0, 2**32))
def test_a_session_is_renewed_early_enough_for_a_busy_broker_and_not_too_often(lifetime: float, seed: int) -> None:
    margin = margin_of(lifetime, random.Random(seed))
    assert 0 < margin <= max(0.15 * lifetime, 0.5 * lifetime)
    if lifetime >= 2.2:
        assert lifetime - margin >= 1.1, "the broker would refuse a renewal within a second"
        assert margin >= min(0.8 * 5.0, 0.4 * lifetime)
    if lifetime > 100:
        assert margin <= 0.15 * lifetime, "sessions that are long are used for most of their time"
