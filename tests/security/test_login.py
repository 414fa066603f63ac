"""The login of a client: its mechanism, its credentials, and when they are requested."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace
from typing import Any

import pytest

from aiokwire.clock import wall_ms
from aiokwire.errors import AuthenticationFailed
from aiokwire.security.jwt import encoded_bytes
from aiokwire.security.login import Login, as_token, new_login
from aiokwire.security.oauthbearer import parse_client_first
from aiokwire.security.sasl import OAuthToken, UserPassword
from aiokwire.security.secret import Secret
from tests.security.options import options


async def first_message(login: Login) -> bytes:
    return await (await login.new_client("broker.example")).evaluate_challenge(b"")


def jwt(**claims: object) -> str:
    """A token without a valid signature."""
    return ".".join([encoded_bytes(b'{"alg":"RS256"}'), encoded_bytes(json.dumps(claims).encode()), "AAAA"])


async def test_plain_uses_the_options() -> None:
    login = new_login(options("PLAIN", sasl_plain_username="alice", sasl_plain_password=Secret("wonder")))
    assert login.mechanism == "PLAIN"
    assert await first_message(login) == b"\0alice\0wonder"
    assert await first_message(login) == b"\0alice\0wonder"
    assert "wonder" not in repr(login)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_scram_uses_the_options_and_delegation_tokens(mechanism: str) -> None:
    login = new_login(
        options(mechanism, sasl_plain_username="id", sasl_plain_password="hmac", sasl_delegation_token=True)
    )
    message = await first_message(login)
    assert login.mechanism == mechanism
    assert message.startswith(b"n,,n=id,r=")
    assert message.endswith(b",tokenauth=true")


async def test_a_changed_password_is_used_by_a_later_login_and_one_after_a_refusal() -> None:
    passwords = ["one", "two", "three"]
    login = new_login(options("PLAIN", sasl_plain_username="alice", sasl_plain_password=lambda: passwords.pop(0)))
    assert await first_message(login) == b"\0alice\0one"
    assert await first_message(login) == b"\0alice\0one"  # within the second
    login.invalidate()
    assert await first_message(login) == b"\0alice\0two"


@pytest.mark.parametrize("found", [("bob", "secret"), UserPassword("bob", Secret("secret")), ("bob", Secret("secret"))])
async def test_a_credentials_provider_returns_user_and_password(found: object) -> None:
    async def provide() -> object:
        return found

    login = new_login(options("PLAIN", sasl_credentials_provider=provide))
    assert await first_message(login) == b"\0bob\0secret"
    await login.close()


@pytest.mark.parametrize("found", [None, "secret", ("bob",), ("bob", None), ("bob", 5)])
async def test_other_results_of_a_credentials_provider_are_errors_without_their_text(found: object) -> None:
    login = new_login(options("PLAIN", sasl_credentials_provider=lambda: found))
    with pytest.raises(AuthenticationFailed, match=r"return \(user name, password\)") as caught:
        await first_message(login)
    assert "secret" not in str(caught.value)


async def test_a_factory_of_the_user_is_called_with_the_host() -> None:
    hosts = []

    def factory(host: str) -> Any:
        hosts.append(host)
        return SimpleNamespace(mechanism="MINE")

    login = new_login(options("MINE", sasl_client_factory=factory))
    assert (await login.new_client("broker.example")).mechanism == "MINE"
    assert hosts == ["broker.example"]


# --- tokens -----------------------------------------------------------------------------------------------------------


class AiokafkaProvider:
    """As aiokafka's AbstractTokenProvider."""

    async def token(self) -> str:
        return "opaque"

    def extensions(self) -> dict[str, str]:
        return {"poolId": "p"}


async def test_aiokafkas_token_providers_work_with_their_extensions() -> None:
    login = new_login(
        options("OAUTHBEARER", sasl_oauth_token_provider=AiokafkaProvider(), sasl_oauthbearer_extensions="lc = 1, b=2")
    )
    _, token, extensions = parse_client_first(await first_message(login))
    assert token == Secret("opaque")
    assert extensions == {"lc": "1", "b": "2", "poolId": "p"}


async def test_a_jwt_is_used_until_its_expiry_is_near() -> None:
    calls = 0

    def provide() -> str:
        nonlocal calls
        calls += 1
        return jwt(exp=wall_ms() // 1000 + 3600, number=calls)

    login = new_login(options("OAUTHBEARER", sasl_oauth_token_provider=provide))
    assert await first_message(login) == await first_message(login)
    assert calls == 1
    login.invalidate()
    await first_message(login)
    assert calls == 2


@pytest.mark.parametrize(
    ("claims", "text"),
    [
        ({"exp": 1000}, "s before it arrived: the clock"),
        ({"exp": 4e9, "nbf": 3.9e9}, "the OAuth token is not valid for another"),
    ],
)
async def test_a_token_of_another_time_names_the_clock(claims: dict[str, float], text: str) -> None:
    login = new_login(options("OAUTHBEARER", sasl_oauth_token_provider=lambda: jwt(**claims)))
    with pytest.raises(AuthenticationFailed, match=text):
        await first_message(login)


def test_the_results_of_token_providers() -> None:
    assert as_token("opaque") == OAuthToken(Secret("opaque"), math.inf)
    assert as_token((Secret("a"), 5)) == OAuthToken(Secret("a"), 5.0)
    assert as_token(jwt(exp=77)).expires_at == 77.0
    given = OAuthToken(Secret("a"), 5.0, "alice", {"a": "b"})
    assert as_token(given, {"a": "c", "d": "e"}).extensions == {"a": "b", "d": "e"}
    with pytest.raises(AuthenticationFailed, match="returned NoneType: return the token as str"):
        as_token(None)
