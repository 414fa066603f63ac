"""SCRAM: the vectors of the RFCs, other implementations, and malformed messages."""

from __future__ import annotations

import asyncio
import math
import threading

import anyio
import pytest
from aiokafka.conn import ScramAuthenticator  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st

from aiokwire.errors import AuthenticationFailed
from aiokwire.security import scram
from aiokwire.security.sasl import UserPassword
from aiokwire.security.scram import (
    ITERATIONS_ON_LOOP,
    SaltedPasswords,
    ScramClient,
    ScramCredential,
    ScramServer,
    is_password_of,
    scram_credential,
)
from aiokwire.security.secret import Secret
from tests.security.exchanges import await_now, exchange

MECHANISMS = ["SCRAM-SHA-256", "SCRAM-SHA-512"]
SALT = bytes(range(16))
CREDENTIALS = {name: scram_credential(name, Secret("pencil"), salt=SALT) for name in MECHANISMS}
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
mechanisms = st.sampled_from(MECHANISMS)


def client(mechanism: str, user: str = "user", password: str = "pencil", **options: object) -> ScramClient:
    return ScramClient(mechanism, UserPassword(user, Secret(password)), **options)  # type: ignore[arg-type]


def server(mechanism: str, **users: ScramCredential) -> ScramServer:
    return ScramServer(mechanism, (users or {"user": CREDENTIALS[mechanism]}).get)


# RFC 7677, section 3
CLIENT_NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SERVER_FIRST = f"r={CLIENT_NONCE}{SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
CLIENT_FINAL = f"c=biws,r={CLIENT_NONCE}{SERVER_NONCE},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
RFC_SALT = bytes.fromhex("5b6d99689d12358eeca04b141236fa81")


async def test_the_client_speaks_as_in_rfc_7677() -> None:
    one = client("SCRAM-SHA-256", nonce=CLIENT_NONCE)
    assert await one.evaluate_challenge(b"") == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert await one.evaluate_challenge(SERVER_FIRST) == CLIENT_FINAL
    assert not one.is_complete
    assert await one.evaluate_challenge(SERVER_FINAL) == b""
    assert one.is_complete


async def test_the_server_speaks_as_in_rfc_7677() -> None:
    credential = scram_credential("SCRAM-SHA-256", Secret("pencil"), 4096, RFC_SALT)
    other = ScramServer("SCRAM-SHA-256", {"user": credential}.get, nonce=SERVER_NONCE)
    assert await other.evaluate_response(f"n,,n=user,r={CLIENT_NONCE}".encode()) == SERVER_FIRST
    assert await other.evaluate_response(CLIENT_FINAL) == SERVER_FINAL
    assert other.is_complete
    assert other.authorization_id == "user"
    assert other.expires_at == math.inf


@given(mechanism=mechanisms, user=texts, password=texts)
@settings(max_examples=60)
def test_any_name_and_password_log_in(mechanism: str, user: str, password: str) -> None:
    credential = scram_credential(mechanism, Secret(password), salt=SALT)
    other = ScramServer(mechanism, {user: credential}.get)
    await_now(exchange(client(mechanism, user, password), other))
    assert other.authorization_id == user


@given(mechanism=mechanisms, user=texts, password=texts)
@settings(max_examples=40)
def test_a_wrong_password_or_an_unknown_user_is_refused_with_one_text(mechanism: str, user: str, password: str) -> None:
    other = ScramServer(mechanism, {"user": CREDENTIALS[mechanism]}.get)
    if (user, password) == ("user", "pencil"):
        password = "pen"
    with pytest.raises(AuthenticationFailed, match=f"invalid credentials with SASL mechanism {mechanism}"):
        await_now(exchange(client(mechanism, user, password), other))
    assert not other.is_complete


@given(
    mechanism=mechanisms,
    number=st.integers(0, 3),
    place=st.integers(0, 10_000),
    value=st.integers(1, 255),
    is_token=st.booleans(),
)
@settings(max_examples=300)
def test_every_changed_byte_is_detected(mechanism: str, number: int, place: int, value: int, is_token: bool) -> None:
    def network(at: int, message: bytes) -> bytes:
        if at != number:
            return message
        changed = bytearray(message)
        changed[place % len(message)] ^= value
        return bytes(changed)

    find = {"user": CREDENTIALS[mechanism]}.get
    other = ScramServer(mechanism, find, find_token=find)
    with pytest.raises(AuthenticationFailed):
        await_now(exchange(client(mechanism, is_token=is_token), other, network=network))


@given(mechanism=mechanisms, step=st.integers(0, 1), message=st.binary(max_size=80))
def test_nonsense_from_the_broker_is_an_error_of_authentication(mechanism: str, step: int, message: bytes) -> None:
    async def play() -> None:
        one, other = client(mechanism), server(mechanism)
        first = await one.evaluate_challenge(b"")
        if step:
            await one.evaluate_challenge(await other.evaluate_response(first))
        await one.evaluate_challenge(message)

    with pytest.raises(AuthenticationFailed):
        await_now(play())


@given(mechanism=mechanisms, step=st.integers(0, 1), message=st.binary(max_size=80) | st.text().map(str.encode))
def test_nonsense_from_the_client_is_an_error_of_authentication(mechanism: str, step: int, message: bytes) -> None:
    async def play() -> None:
        other = server(mechanism)
        if step:
            await other.evaluate_response(await client(mechanism).evaluate_challenge(b""))
        await other.evaluate_response(message)

    with pytest.raises(AuthenticationFailed):
        await_now(play())


@pytest.mark.parametrize("iterations", [1, 4095, 1_000_001, 999_999_999])
async def test_too_few_and_too_many_iterations_are_refused_before_they_are_computed(iterations: int) -> None:
    one = client("SCRAM-SHA-256", nonce="abc")
    await one.evaluate_challenge(b"")
    with pytest.raises(AuthenticationFailed, match=f"requires {iterations} iterations; allowed are 4096 to 1000000"):
        await one.evaluate_challenge(f"r=abcdef,s=AAAA,i={iterations}".encode())


@pytest.mark.parametrize("nonce", ["abc", "abX", "xabcdef"])
async def test_a_nonce_that_does_not_extend_the_clients_is_refused(nonce: str) -> None:
    one = client("SCRAM-SHA-256", nonce="abc")
    await one.evaluate_challenge(b"")
    with pytest.raises(AuthenticationFailed, match="nonce"):
        await one.evaluate_challenge(f"r={nonce},s=AAAA,i=4096".encode())


async def test_a_broker_without_the_password_is_refused() -> None:
    """It accepts any proof, and signs with its own key."""
    one = client("SCRAM-SHA-256")
    first = await one.evaluate_challenge(b"")
    stranger = server("SCRAM-SHA-256", user=scram_credential("SCRAM-SHA-256", Secret("guess")))
    await one.evaluate_challenge(await stranger.evaluate_response(first))
    with pytest.raises(AuthenticationFailed, match="did not prove that it knows the password"):
        await one.evaluate_challenge(SERVER_FINAL)
    assert not one.is_complete


async def test_the_brokers_error_is_in_the_text() -> None:
    one = client("SCRAM-SHA-256")
    first = await one.evaluate_challenge(b"")
    await one.evaluate_challenge(await server("SCRAM-SHA-256").evaluate_response(first))
    with pytest.raises(AuthenticationFailed, match="invalid-proof"):
        await one.evaluate_challenge(b"e=invalid-proof")


async def test_an_unknown_user_has_the_same_salt_in_each_attempt() -> None:
    seen = set()
    for _ in range(3):
        other = server("SCRAM-SHA-256")
        message = await other.evaluate_response(b"n,,n=unknown,r=abc")
        seen.add(message.split(b",")[1:][0])
        assert message.endswith(b",i=4096")
    assert len(seen) == 1
    assert seen != {(await server("SCRAM-SHA-256").evaluate_response(b"n,,n=another,r=abc")).split(b",")[1]}


async def test_a_second_proof_with_the_same_nonce_is_refused() -> None:
    one, other = client("SCRAM-SHA-256"), server("SCRAM-SHA-256")
    final = await one.evaluate_challenge(await other.evaluate_response(await one.evaluate_challenge(b"")))
    with pytest.raises(AuthenticationFailed, match="invalid credentials"):
        await other.evaluate_response(final[:-44] + b"A" * 43 + b"=")
    with pytest.raises(AuthenticationFailed, match="after the end"):
        await other.evaluate_response(final)


async def test_a_delegation_token_logs_in_as_its_owner() -> None:
    token = CREDENTIALS["SCRAM-SHA-512"]._replace(principal="alice", expires_at=1234.0)
    other = ScramServer("SCRAM-SHA-512", lambda _: None, find_token={"user": token}.get)
    await exchange(client("SCRAM-SHA-512", is_token=True), other)
    assert (other.authorization_id, other.expires_at, other.is_token) == ("alice", 1234.0, True)


async def test_a_token_and_a_password_of_a_user_are_not_interchangeable() -> None:
    for is_token in (True, False):
        find, find_token = (CREDENTIALS["SCRAM-SHA-256"], None) if is_token else (None, CREDENTIALS["SCRAM-SHA-256"])
        other = ScramServer("SCRAM-SHA-256", lambda _, found=find: found, find_token=lambda _, found=find_token: found)  # type: ignore[misc]
        with pytest.raises(AuthenticationFailed):
            await exchange(client("SCRAM-SHA-256", is_token=is_token), other)


async def test_many_iterations_run_in_a_thread_and_few_on_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []
    derive = scram.salted_password

    def recorded(*args: object) -> bytes:
        threads.append(threading.current_thread() is threading.main_thread())
        return derive(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(scram, "salted_password", recorded)
    cache = SaltedPasswords()
    for iterations in (ITERATIONS_ON_LOOP, ITERATIONS_ON_LOOP + 1):
        for _ in range(2):  # the second time, the cache has it
            await cache.get("SCRAM-SHA-256", Secret("pencil"), SALT, iterations)
    assert threads == [True, False]


async def test_connections_that_log_in_together_derive_the_password_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    derive = scram.salted_password

    def counted(*args: object) -> bytes:
        nonlocal calls
        calls += 1
        return derive(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(scram, "salted_password", counted)
    cache = SaltedPasswords()
    async with anyio.create_task_group() as group:
        for _ in range(10):
            group.start_soon(cache.get, "SCRAM-SHA-256", Secret("pencil"), SALT, ITERATIONS_ON_LOOP + 1)
    assert calls == 1


async def test_the_cache_is_bounded() -> None:
    cache = SaltedPasswords()
    for number in range(200):
        await cache.get("SCRAM-SHA-256", Secret("x"), SALT, number + 1)
    assert len(cache._salted) <= scram.MAX_CACHED
    assert repr(cache).startswith("<SaltedPasswords ")


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_a_clear_password_is_checked_against_the_stored_keys(mechanism: str) -> None:
    assert await is_password_of(mechanism, CREDENTIALS[mechanism], Secret("pencil"))
    assert not await is_password_of(mechanism, CREDENTIALS[mechanism], Secret("pencils"))
    assert not await is_password_of(mechanism, None, Secret("pencil"))


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("user", ["user", "a=b,c", "Zoë"])
async def test_aiokafka_logs_in(mechanism: str, user: str) -> None:
    other = server(mechanism, **{user: CREDENTIALS[mechanism]})
    peer = ScramAuthenticator(
        loop=asyncio.get_running_loop(),
        sasl_plain_username=user,
        sasl_plain_password="pencil",
        sasl_mechanism=mechanism,
    )
    challenge, steps = None, 0
    while (step := await peer.step(challenge)) is not None:
        message, expects = step
        challenge = await other.evaluate_response(message)
        steps += expects
    assert other.is_complete
    assert other.authorization_id == user


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of kafka-python's import
@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_kafka_python_logs_in(mechanism: str) -> None:
    from kafka.net.sasl.scram import SaslMechanismScram  # type: ignore[import-untyped]

    other = server(mechanism)
    peer = SaslMechanismScram(
        sasl_mechanism=mechanism, sasl_plain_username="user", sasl_plain_password="pencil", security_protocol="SASL_SSL"
    )
    while not peer.is_done():
        message = peer.auth_bytes()
        peer.receive(await other.evaluate_response(message))
    assert peer.is_authenticated()
    assert other.is_complete


@pytest.mark.parametrize("bad", ["", "\ud800"])
async def test_credentials_that_cannot_be_sent_are_refused_by_the_client(bad: str) -> None:
    one = client("SCRAM-SHA-256", user=bad)
    with pytest.raises(AuthenticationFailed):
        await one.evaluate_challenge(b"")
    with pytest.raises(AuthenticationFailed):
        await exchange(client("SCRAM-SHA-256", password=bad), server("SCRAM-SHA-256"))


def test_the_keys_are_not_in_a_repr() -> None:
    assert repr(CREDENTIALS["SCRAM-SHA-256"]) == "ScramCredential(iterations=4096)"
    assert "pencil" not in repr(client("SCRAM-SHA-256"))
