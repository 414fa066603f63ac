"""OAUTHBEARER: the message of RFC 7628, Kafka's extensions, and the broker's error."""

from __future__ import annotations

import math

import pytest
from aiokafka.conn import OAuthAuthenticator  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from aiokwire.errors import AuthenticationFailed
from aiokwire.security.oauthbearer import OAuthBearerClient, OAuthBearerServer
from aiokwire.security.sasl import OAuthToken
from aiokwire.security.secret import Secret
from tests.security.exchanges import await_now, exchange

keys = st.from_regex(r"[A-Za-z]{1,20}", fullmatch=True).filter(lambda key: key != "auth")
values = st.from_regex(r"[!-~ \t\r\n]{1,20}", fullmatch=True)
tokens = st.from_regex(r"[-._~+/A-Za-z0-9]{1,60}={0,2}", fullmatch=True)


async def validate(value: Secret) -> OAuthToken:
    """Accept each token but "expired"."""
    if value.reveal() == "expired":
        raise AuthenticationFailed("the token has expired")
    return OAuthToken(value, 99.0, "alice")


def client(value: str = "abc", **extensions: str) -> OAuthBearerClient:
    return OAuthBearerClient(OAuthToken(Secret(value), math.inf, extensions=extensions))


async def test_the_message_is_the_one_of_the_rfc_with_kafkas_extensions() -> None:
    message = await client("abc.def", logicalCluster="lkc-1", poolId="p 2").evaluate_challenge(b"")
    assert message == b"n,,\x01auth=Bearer abc.def\x01logicalCluster=lkc-1\x01poolId=p 2\x01\x01"


@given(value=tokens, extensions=st.dictionaries(keys, values, max_size=4))
def test_any_token_with_extensions_logs_in(value: str, extensions: dict[str, str]) -> None:
    one, server = client(value, **extensions), OAuthBearerServer(validate)
    await_now(exchange(one, server))
    assert (server.authorization_id, server.expires_at, dict(server.extensions)) == ("alice", 99.0, extensions)


async def test_a_refused_token_is_an_error_with_its_status_and_scope() -> None:
    one, server = client("expired"), OAuthBearerServer(validate, scope="kafka")
    challenge = await server.evaluate_response(await one.evaluate_challenge(b""))
    assert challenge == b'{"status": "invalid_token", "scope": "kafka"}'
    confirmation = await one.evaluate_challenge(challenge)
    assert confirmation == b"\x01"
    assert not one.is_complete
    with pytest.raises(AuthenticationFailed, match="the token has expired"):
        await server.evaluate_response(confirmation)
    with pytest.raises(AuthenticationFailed, match=r"status 'invalid_token' \(it needs the scope 'kafka'\)"):
        await one.evaluate_challenge(b"")


@given(st.binary(min_size=1, max_size=60) | st.sampled_from([b"[]", b"3", b'{"a":1}', b"[" * 10_000]))
def test_any_error_of_the_broker_is_an_error_of_authentication(challenge: bytes) -> None:
    async def play() -> None:
        one = client()
        await one.evaluate_challenge(b"")
        assert await one.evaluate_challenge(challenge) == b"\x01"
        await one.evaluate_challenge(b"")

    with pytest.raises(AuthenticationFailed, match="the broker rejected the OAuth token"):
        await_now(play())


@given(
    st.binary(max_size=100) | st.from_regex(rb"n,(a=[a-z,=2C]*)?,\x01auth=Bearer [a-z ]*(\x01[a-z]*=?[a-z]*)*\x01?\x01")
)
def test_a_malformed_message_is_an_error_of_authentication_or_a_login(message: bytes) -> None:
    server = OAuthBearerServer(validate)
    try:
        await_now(server.evaluate_response(message))
    except AuthenticationFailed:
        assert not server.is_complete


async def test_another_authorization_id_is_refused() -> None:
    server = OAuthBearerServer(validate)
    with pytest.raises(AuthenticationFailed, match="authorization id"):
        await server.evaluate_response(b"n,a=bob,\x01auth=Bearer abc\x01\x01")
    assert await OAuthBearerServer(validate).evaluate_response(b"n,a=alice,\x01auth=bearer  abc\x01\x01") == b""


@pytest.mark.parametrize("value", ["", "a b", "a\x01b", "ä", "a\nb"])
async def test_a_token_that_cannot_be_sent_is_refused_without_its_text(value: str) -> None:
    with pytest.raises(AuthenticationFailed, match="token is empty or has characters") as caught:
        await client(value).evaluate_challenge(b"")
    assert not value or value not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value"), [("auth", "x"), ("a-b", "x"), ("a", ""), ("a", "\x01"), ("", "x"), ("a", "ä")]
)
async def test_an_extension_that_cannot_be_sent_is_refused_by_name(key: str, value: str) -> None:
    with pytest.raises(AuthenticationFailed, match="the SASL extension"):
        await client("abc", **{key: value}).evaluate_challenge(b"")


async def test_aiokafka_logs_in() -> None:
    class Provider:
        async def token(self) -> str:
            return "abc"

        def extensions(self) -> dict[str, str]:
            return {"poolId": "p"}

    server = OAuthBearerServer(validate)
    peer = OAuthAuthenticator(sasl_oauth_token_provider=Provider())
    message, _ = await peer.step(None)
    assert await server.evaluate_response(message) == b""
    assert dict(server.extensions) == {"poolId": "p"}


async def test_the_token_is_not_in_a_repr() -> None:
    assert "abcdef" not in repr(OAuthToken(Secret("abcdef"), math.inf))
