"""SASL logins at the broker: states of a connection, failed logins, sessions, re-authentication."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

import anyio
import pytest
import pytest_asyncio

from aiokwire.broker import Broker, Listener
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import api_versions, metadata, sasl_authenticate, sasl_handshake
from aiokwire.security import SaslClient, Secret, UserPassword
from aiokwire.security.plain import PlainClient
from aiokwire.security.scram import ScramClient
from tests.broker.raw import RawClient, batch, log_in, produce_one, shake_hands

MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
INVALID = "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"


def sasl_client(mechanism: str = "SCRAM-SHA-256", user: str = "alice", password: str = "secret") -> SaslClient:
    """The client's side of a login."""
    credentials = UserPassword(user, Secret(password))
    return PlainClient(credentials) if mechanism == "PLAIN" else ScramClient(mechanism, credentials)


def new_broker(**options: object) -> Broker:
    """A broker with a SASL listener first and two users."""
    settings: dict[str, object] = {
        "listeners": [Listener(protocol="SASL_PLAINTEXT"), Listener()],
        "users": {"alice": "secret", "bob": "secret"},
        "topics": {"t": 1},
        "connection_failed_authentication_delay_ms": 0,
    }
    return Broker(**{**settings, **options})  # type: ignore[arg-type]  # options of each test


@pytest_asyncio.fixture
async def secured() -> AsyncIterator[Broker]:
    async with new_broker() as running:
        yield running


@pytest_asyncio.fixture
async def stranger(secured: Broker) -> AsyncIterator[RawClient]:
    """A connection to the SASL listener, not logged in."""
    connected = await RawClient.connect(secured)
    yield connected
    await connected.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_a_user_with_the_right_password_is_served(stranger: RawClient, mechanism: str) -> None:
    assert (await stranger.ask(api_versions.ApiVersionsRequest(), 0)).error_code == 0
    answer = await log_in(stranger, sasl_client(mechanism))
    assert (answer.error_code, answer.session_lifetime_ms) == (0, 0)
    assert (await produce_one(stranger, "t", batch([b"a"]))).error_code == 0


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("user", "password"), [("alice", "wrong"), ("nemo", "secret")])
async def test_wrong_credentials_are_refused_alike_and_the_connection_is_closed(
    stranger: RawClient, caplog: pytest.LogCaptureFixture, mechanism: str, user: str, password: str
) -> None:
    with caplog.at_level(logging.WARNING, "aiokwire.broker"):
        answer = await log_in(stranger, sasl_client(mechanism, user, password))
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        expected = "Authentication failed: Invalid username or password" if mechanism == "PLAIN" else INVALID
        assert answer.error_message == expected.replace("SCRAM-SHA-256", mechanism)
        assert await stranger.closed_by_broker()
    assert len(caplog.records) == 1
    assert f"by {mechanism} at listener SASL_PLAINTEXT failed" in caplog.text
    assert password not in caplog.text.replace("password", "")


async def test_a_refusal_is_delayed_to_slow_down_guesses() -> None:
    async with new_broker(connection_failed_authentication_delay_ms=150) as broker:
        client = await RawClient.connect(broker)
        started = anyio.current_time()
        answer = await log_in(client, sasl_client("PLAIN", password="wrong"))
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert anyio.current_time() - started >= 0.15
        await client.close()


async def test_a_mechanism_that_is_not_enabled_is_refused_with_the_list(
    stranger: RawClient, caplog: pytest.LogCaptureFixture
) -> None:
    answer = await shake_hands(stranger, "GSSAPI")
    assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert answer.mechanisms == MECHANISMS
    assert await stranger.closed_by_broker()
    assert "Unsupported SASL mechanism GSSAPI" in caplog.text


async def test_a_client_without_sasl_is_turned_away_with_a_remedy(
    stranger: RawClient, caplog: pytest.LogCaptureFixture
) -> None:
    stranger.send(metadata.MetadataRequest(topics=[]), 9)
    assert await stranger.closed_by_broker()
    assert "the first request was METADATA, but listener SASL_PLAINTEXT requires a SASL login" in caplog.text
    assert "sasl_mechanism (PLAIN, SCRAM-SHA-256, SCRAM-SHA-512)" in caplog.text


async def test_requests_before_a_login_are_small_and_few(stranger: RawClient, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(20):
        await stranger.ask(api_versions.ApiVersionsRequest(), 0)
    stranger.send(api_versions.ApiVersionsRequest(), 0)
    assert await stranger.closed_by_broker()
    assert "20 requests at listener SASL_PLAINTEXT without a login" in caplog.text


async def test_a_large_frame_is_refused_before_the_login_and_accepted_after_it(
    secured: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    large = batch([b"x" * 800_000])
    logged_in, client = await RawClient.connect(secured), await RawClient.connect(secured)
    await log_in(logged_in, sasl_client())
    assert (await produce_one(logged_in, "t", large)).error_code == 0
    client.send(sasl_authenticate.SaslAuthenticateRequest(auth_bytes=bytes(600_000)), 2)
    assert await client.closed_by_broker()
    assert "exceeds the limit of 524288 (sasl.server.max.receive.size)" in caplog.text
    await logged_in.close()
    await client.close()


async def test_tokens_without_headers_follow_an_old_handshake(stranger: RawClient) -> None:
    assert (await shake_hands(stranger, "SCRAM-SHA-512", version=0)).error_code == 0
    client, challenge = sasl_client("SCRAM-SHA-512"), b""
    while True:
        token = await client.evaluate_challenge(challenge)
        if client.is_complete:
            break
        stranger.writer.write(len(token).to_bytes(4, "big") + token)
        size = int.from_bytes(await stranger.reader.readexactly(4), "big")
        challenge = await stranger.reader.readexactly(size)
    assert (await produce_one(stranger, "t", batch([b"a"]))).error_code == 0


async def test_a_refused_token_without_a_header_closes_the_connection(stranger: RawClient) -> None:
    await shake_hands(stranger, "PLAIN", version=0)
    token = b"\0alice\0wrong"
    stranger.writer.write(len(token).to_bytes(4, "big") + token)
    assert await stranger.closed_by_broker()


async def test_requests_sent_behind_the_login_wait_for_it(stranger: RawClient) -> None:
    assert (await shake_hands(stranger, "PLAIN")).error_code == 0
    stranger.send(sasl_authenticate.SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), 2)
    stranger.send(metadata.MetadataRequest(topics=[]), 9)
    assert (await stranger.receive(sasl_authenticate.SaslAuthenticateResponse, 2, 2)).error_code == 0
    await stranger.receive(metadata.MetadataResponse, 9, 3)


async def test_sasl_at_a_plaintext_listener_is_an_illegal_state(secured: Broker) -> None:
    client = await RawClient.connect(secured, listener="PLAINTEXT")
    assert (await shake_hands(client, "PLAIN")).error_code == ErrorCode.ILLEGAL_SASL_STATE
    answer = await client.ask(sasl_authenticate.SaslAuthenticateRequest(auth_bytes=b"x"), 2)
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert (await produce_one(client, "t", batch([b"a"]))).error_code == 0
    await client.close()


# --- sessions ---------------------------------------------------------------------------------------------------------


async def test_a_session_ends_unless_the_client_authenticates_again(caplog: pytest.LogCaptureFixture) -> None:
    async with new_broker(connections_max_reauth_ms=100) as broker:
        client = await RawClient.connect(broker)
        assert (await log_in(client, sasl_client())).session_lifetime_ms == 100
        await _expire(0.1)
        assert (await log_in(client, sasl_client())).error_code == 0, "an expired session may be renewed"
        assert (await produce_one(client, "t", batch([b"a"]))).error_code == 0
        await _expire(0.1)
        client.send(metadata.MetadataRequest(topics=[]), 9)
        assert await client.closed_by_broker()
        assert "the session of User:alice at listener SASL_PLAINTEXT expired after 100 ms" in caplog.text
        await client.close()


async def _expire(seconds: float) -> None:
    with anyio.move_on_after(seconds + 0.02):
        await anyio.sleep_forever()


async def test_a_user_cannot_become_another_one(stranger: RawClient, caplog: pytest.LogCaptureFixture) -> None:
    await log_in(stranger, sasl_client("PLAIN"))
    answer = await log_in(stranger, sasl_client("PLAIN", "bob"))
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == "Cannot change principals during re-authentication from User.alice: User.bob"
    assert await stranger.closed_by_broker()


async def test_a_user_cannot_change_the_mechanism(stranger: RawClient) -> None:
    await log_in(stranger, sasl_client("PLAIN"))
    answer = await log_in(stranger, sasl_client("SCRAM-SHA-256"))
    assert answer.error_message == (
        "SASL mechanism 'SCRAM-SHA-256' requested by client is not supported for re-authentication of mechanism 'PLAIN'"
    )
    assert await stranger.closed_by_broker()


async def test_a_second_re_authentication_within_a_second_is_refused_and_the_session_remains(
    stranger: RawClient,
) -> None:
    for _ in range(2):
        assert (await log_in(stranger, sasl_client("PLAIN"))).error_code == 0
    answer = await shake_hands(stranger, "PLAIN")
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
    answer2 = await stranger.ask(sasl_authenticate.SaslAuthenticateRequest(auth_bytes=b"x"), 2)
    assert answer2.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert (await produce_one(stranger, "t", batch([b"a"]))).error_code == 0


async def test_the_first_version_of_a_response_has_no_session_lifetime(secured: Broker) -> None:
    client = await RawClient.connect(secured)
    assert (await log_in(client, sasl_client(), version=0)).session_lifetime_ms == 0
    await client.close()


# --- deadlines --------------------------------------------------------------------------------------------------------


async def test_a_connection_without_a_login_is_closed_after_ten_seconds(
    secured: Broker, stranger: RawClient, caplog: pytest.LogCaptureFixture
) -> None:
    await stranger.ask(api_versions.ApiVersionsRequest(), 0)
    connection = _connections(secured)[0]
    now = anyio.current_time()
    connection.close_if_overdue(now + 9)
    connection.close_if_overdue(now + 11)
    assert await stranger.closed_by_broker()
    assert "no SASL login within 10 s" in caplog.text


async def test_an_overdue_connection_is_logged_once(
    secured: Broker, stranger: RawClient, caplog: pytest.LogCaptureFixture
) -> None:
    await stranger.ask(api_versions.ApiVersionsRequest(), 0)
    connection = _connections(secured)[0]
    for seconds in (11, 12, 13):
        connection.close_if_overdue(anyio.current_time() + seconds)
    assert await stranger.closed_by_broker()
    assert caplog.text.count("no SASL login within 10 s") == 1


async def test_a_frame_that_does_not_end_is_closed_after_half_a_minute(
    secured: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    client = await RawClient.connect(secured, listener="PLAINTEXT")
    await client.ask(api_versions.ApiVersionsRequest(), 0)
    (connection,) = _connections(secured)
    client.writer.write((1000).to_bytes(4, "big") + bytes(10))
    while connection.idle:
        await anyio.lowlevel.checkpoint()
    now = anyio.current_time()
    connection.close_if_overdue(now)
    connection.close_if_overdue(now + 29)
    assert not client.reader.at_eof()
    connection.close_if_overdue(now + 31)
    assert await client.closed_by_broker()
    assert "is not complete after 31 s" in caplog.text
    await client.close()


def _connections(broker: Broker) -> list:  # type: ignore[type-arg]
    serving = broker._serving
    assert serving is not None
    return [one for server in serving.listeners._servers.values() for one in server.connections]


async def test_a_fault_rule_can_refuse_a_login(secured: Broker, stranger: RawClient) -> None:
    secured.faults.on(sasl_handshake.SaslHandshakeRequest).error(ErrorCode.UNSUPPORTED_SASL_MECHANISM)
    assert (await shake_hands(stranger, "PLAIN")).error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
