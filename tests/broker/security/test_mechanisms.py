"""OAUTHBEARER and GSSAPI at the broker: the configs they need, and logins with a provider."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from aiokwire import AuthenticationFailed, Producer
from aiokwire.broker import Broker, Listener
from aiokwire.errors import ConfigurationError
from tests.security.provider import IdentityProvider, identity_provider, new_token


@pytest.fixture
def provider() -> Iterator[IdentityProvider]:
    with identity_provider() as running:
        yield running


def new_broker(mechanism: str, **configs: object) -> Broker:
    listeners = [Listener(protocol="SASL_PLAINTEXT", mechanisms=[mechanism])]
    return Broker(listeners=listeners, topics={"t": 1}, connection_failed_authentication_delay_ms=0, **configs)  # type: ignore[arg-type]


def new_oauth_broker(provider: IdentityProvider) -> Broker:
    return new_broker(
        "OAUTHBEARER",
        sasl_oauthbearer_jwks_endpoint_url=provider.url + "/jwks",
        sasl_oauthbearer_expected_issuer=provider.url,
        sasl_oauthbearer_expected_audience="other, kafka",
    )


async def test_a_producer_logs_in_with_a_token_of_the_provider(provider: IdentityProvider) -> None:
    async with new_oauth_broker(provider) as broker:
        producer = Producer(
            broker.bootstrap_servers,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauthbearer_token_endpoint_url=provider.url + "/token",
            sasl_oauthbearer_client_credentials_client_id="app",
            sasl_oauthbearer_client_credentials_client_secret="app-secret",
        )
        async with producer:
            await producer.send("t", b"x")
    assert provider.count == {"/token": 1, "/jwks": 1}


async def test_a_token_of_another_issuer_is_refused(provider: IdentityProvider) -> None:
    token = new_token(provider.claims("alice", iss="https://elsewhere.example"))
    async with new_oauth_broker(provider) as broker:
        producer = Producer(
            broker.bootstrap_servers,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauth_token_provider=lambda: token,
        )
        with pytest.raises(AuthenticationFailed, match="rejected the OAuth token: status 'invalid_token'"):
            await producer.start()
        await producer.close()


async def refusal_of(broker: Broker) -> str:
    with pytest.raises(ConfigurationError) as caught:
        await broker.start()
    await broker.close()
    return str(caught.value)


async def test_a_missing_part_of_a_mechanism_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "OAUTHBEARER needs sasl.oauthbearer.jwks.endpoint.url" in await refusal_of(new_broker("OAUTHBEARER"))
    url = {"sasl_oauthbearer_jwks_endpoint_url": "https://idp.example/jwks"}
    assert "sasl.oauthbearer.expected.issuer" in await refusal_of(new_broker("OAUTHBEARER", **url))
    url = {"sasl_oauthbearer_jwks_endpoint_url": "http://idp.example/jwks"}
    assert "https only" in await refusal_of(new_broker("OAUTHBEARER", **url))
    monkeypatch.setitem(sys.modules, "gssapi", None)
    assert "pip install 'aiokwire[gssapi]'" in await refusal_of(new_broker("GSSAPI"))
    assert "no SASL mechanism MAGIC; it has PLAIN, SCRAM-SHA-256" in await refusal_of(new_broker("MAGIC"))
