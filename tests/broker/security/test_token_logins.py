"""Logins by tokens: OAUTHBEARER without signatures or by a function; delegation tokens."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator
from typing import Any

import pytest

from aiokwire.broker import Listener
from aiokwire.clock import wall_ms
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import AuthenticationFailed
from aiokwire.protocol.messages import create_delegation_token as tokens
from aiokwire.security import OAuthToken, Secret, UserPassword
from aiokwire.security.jwt import encoded_bytes
from aiokwire.security.oauthbearer import OAuthBearerClient
from aiokwire.security.scram import ScramClient
from tests.broker.raw import RawClient, batch, log_in, produce_one
from tests.broker.security.test_logins import new_broker, sasl_client
from tests.security.provider import IdentityProvider, identity_provider

OAUTH: dict[str, Any] = {"protocol": "SASL_PLAINTEXT", "mechanisms": ["OAUTHBEARER"]}


@pytest.fixture
def provider() -> Iterator[IdentityProvider]:
    with identity_provider() as running:
        yield running


def bearer(token: str) -> OAuthBearerClient:
    """The client's side of a login by a token."""
    return OAuthBearerClient(OAuthToken(Secret(token), math.inf))


def unsecured(**claims: Any) -> str:
    """A token without a signature."""
    parts = [{"alg": "none"}, claims]
    return ".".join([*(encoded_bytes(json.dumps(part).encode()) for part in parts), ""])


@pytest.mark.parametrize("allowed", [True, False])
async def test_an_unsecured_token_is_a_login_only_if_the_listener_allows_it(
    provider: IdentityProvider, allowed: bool
) -> None:
    options: dict[str, Any] = {
        "listeners": [Listener(**OAUTH, allow_unsecured_tokens=allowed)],
        "sasl_oauthbearer_jwks_endpoint_url": f"{provider.url}/jwks",
        "sasl_oauthbearer_expected_audience": "kafka",
    }
    async with new_broker(**options) as broker:
        client = await RawClient.connect(broker)
        answer = await log_in(client, bearer(unsecured(sub="dave", exp=wall_ms() / 1000 + 60)))
        assert (answer.error_code == 0) is allowed
        await client.close()


@pytest.mark.parametrize("claims", [{"sub": "dave", "exp": 1}, {"sub": "dave"}, {"exp": 1e12}])
async def test_an_unsecured_token_without_subject_or_time_is_refused(claims: dict[str, Any]) -> None:
    async with new_broker(listeners=[Listener(**OAUTH, allow_unsecured_tokens=True)]) as broker:
        client = await RawClient.connect(broker)
        assert (await log_in(client, bearer(unsecured(**claims)))).error_code != 0
        await client.close()


async def test_a_function_validates_tokens() -> None:
    async def validate(token: Secret) -> OAuthToken:
        if token.reveal() != "good":
            raise AuthenticationFailed("not good")
        return OAuthToken(token, math.inf, "erin")

    async with new_broker(listeners=[Listener(**OAUTH, validate_token=validate)]) as broker:
        good, bad = await RawClient.connect(broker), await RawClient.connect(broker)
        assert (await log_in(good, bearer("good"))).error_code == 0
        assert "not good" in ((await log_in(bad, bearer("bad"))).error_message or "")
        await good.close()
        await bad.close()


async def test_a_delegation_token_is_a_login_of_its_owner_that_cannot_create_tokens() -> None:
    async with new_broker(delegation_token_secret_key="key of tokens") as broker:
        owner = await RawClient.connect(broker)
        await log_in(owner, sasl_client())
        created = await owner.ask(tokens.CreateDelegationTokenRequest(max_lifetime_ms=60_000), 2)
        assert created.error_code == 0
        await owner.close()
        credentials = UserPassword(created.token_id, Secret(base64.b64encode(created.hmac).decode()))
        client = await RawClient.connect(broker)
        answer = await log_in(client, ScramClient("SCRAM-SHA-512", credentials, is_token=True))
        assert answer.error_code == 0
        assert 0 < answer.session_lifetime_ms <= 60_000
        assert (await produce_one(client, "t", batch([b"a"]))).error_code == 0
        refused = await client.ask(tokens.CreateDelegationTokenRequest(max_lifetime_ms=-1), 2)
        assert refused.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        assert refused.principal_name == "alice"
        await client.close()
