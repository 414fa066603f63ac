"""PLAIN: one message, and the same error for an unknown user as for a wrong password."""

from __future__ import annotations

import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokwire.errors import AuthenticationFailed
from aiokwire.security.plain import PlainClient, PlainServer
from aiokwire.security.sasl import UserPassword
from aiokwire.security.secret import Secret
from tests.security.exchanges import finish

names = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=40)


async def verify(user: str, password: Secret) -> bool:
    """Whether the password is the user's name twice."""
    return hmac.compare_digest(password.reveal().encode(), (user * 2).encode())


def client(user: str, password: str) -> PlainClient:
    return PlainClient(UserPassword(user, Secret(password)))


async def test_the_message_is_the_one_of_the_rfc() -> None:
    assert await client("tim", "tanstaaftanstaaf").evaluate_challenge(b"") == b"\0tim\0tanstaaftanstaaf"


@given(user=names)
def test_a_user_logs_in_with_any_name_and_password(user: str) -> None:
    server = PlainServer(verify)
    finish(client(user, user * 2), server)
    assert server.authorization_id == user


@given(user=names, password=names)
def test_a_wrong_password_is_refused(user: str, password: str) -> None:
    server = PlainServer(verify)
    with pytest.raises(AuthenticationFailed, match="Invalid username or password"):
        finish(client(user, password + "?" + user * 3), server)
    assert not server.is_complete
    assert server.authorization_id == ""


@given(st.binary(max_size=60))
def test_a_malformed_message_is_refused(message: bytes) -> None:
    with pytest.raises(AuthenticationFailed):
        finish(None, PlainServer(verify), message)


async def test_another_authorization_id_is_refused() -> None:
    with pytest.raises(AuthenticationFailed, match="authorization id"):
        await PlainServer(verify).evaluate_response(b"admin\0tim\0timtim")


@pytest.mark.parametrize(("user", "password"), [("", "x"), ("x", ""), ("a\0b", "x"), ("x", "a\0b"), ("x", "\ud800")])
async def test_credentials_that_cannot_be_sent_are_refused_by_the_client(user: str, password: str) -> None:
    with pytest.raises(AuthenticationFailed) as caught:
        await client(user, password).evaluate_challenge(b"")
    assert "a\0b" not in str(caught.value)


async def test_a_challenge_is_an_error() -> None:
    with pytest.raises(AuthenticationFailed, match="which PLAIN does not have"):
        await client("tim", "x").evaluate_challenge(b"more")
