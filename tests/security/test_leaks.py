"""Secrets that cannot be sent: the errors do not contain them."""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator
from typing import Any

import pytest

from aiokwire.errors import AuthenticationFailed, ConfigurationError, ConnectionFailed, KafkaError
from aiokwire.security import Secret, new_login
from aiokwire.security.aws_credentials import find_credentials
from aiokwire.security.http import HttpResponse, request
from tests.security.options import options
from tests.security.provider import Answer, IdentityProvider, identity_provider

HOST = "b-1.demo.kafka.eu-central-1.amazonaws.com"


@pytest.fixture
def provider() -> Iterator[IdentityProvider]:
    with identity_provider() as running:
        yield running


@pytest.mark.parametrize(
    ("mechanism", "more"),
    [
        ("PLAIN", {"sasl_plain_username": "alice", "sasl_plain_password": "hidden\ud800"}),
        ("SCRAM-SHA-256", {"sasl_plain_username": "hidden\ud800", "sasl_plain_password": "x"}),
        ("AWS_MSK_IAM", {"sasl_aws_access_key_id": "A", "sasl_aws_secret_access_key": "hidden\ud800"}),
        (
            "OAUTHBEARER",
            {
                "sasl_oauthbearer_token_endpoint_url": "http://127.0.0.1:1/",
                "sasl_oauthbearer_client_credentials_client_id": "app",
                "sasl_oauthbearer_client_credentials_client_secret": "hidden\ud800",
            },
        ),
        ("OAUTHBEARER", {"sasl_oauth_token_provider": lambda: "hidden\ud800"}),
    ],
)
async def test_a_secret_that_cannot_be_encoded_is_not_in_the_error(mechanism: str, more: dict[str, Any]) -> None:
    login = new_login(options(mechanism, **more))
    with pytest.raises((AuthenticationFailed, ConfigurationError)) as caught:
        await (await login.new_client(HOST)).evaluate_challenge(b"")
    assert "hidden" not in "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    assert caught.value.__cause__ is None


def test_a_header_that_http_refuses_is_not_in_the_error(provider: IdentityProvider) -> None:
    environment = {
        "HOME": "/nonexistent",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": provider.url,
        "AWS_CONTAINER_AUTHORIZATION_TOKEN": "hid\nden",
    }
    with pytest.raises(AuthenticationFailed, match="the header Authorization") as caught:
        find_credentials(environment=environment)
    assert "den" not in str(caught.value).replace("credentials", "")


def test_an_address_that_http_refuses_is_not_in_the_error() -> None:
    with pytest.raises(ConnectionFailed) as caught:
        request("GET", "http://127.0.0.1:1/x?key=hid den")
    assert "den" not in str(caught.value)


async def test_a_response_with_a_token_is_not_in_a_repr_or_an_error(provider: IdentityProvider) -> None:
    response = HttpResponse(200, {}, json.dumps({"access_token": "hidden"}).encode())
    assert repr(response) == "<HttpResponse 200, 26 bytes>"
    provider.answers = [Answer(200, b'{"access_token": ["hidden"]}')] * 3
    login = new_login(
        options(
            "OAUTHBEARER",
            sasl_oauthbearer_token_endpoint_url=provider.url,
            sasl_oauthbearer_client_credentials_client_id="app",
            sasl_oauthbearer_client_credentials_client_secret="app-secret",
            sasl_login_retry_backoff_max_ms=1,
        )
    )
    with pytest.raises(KafkaError) as caught:
        await login.new_client("broker")
    assert "hidden" not in "".join(traceback.format_exception(caught.value))


def test_a_secret_encodes_itself() -> None:
    assert Secret("pässword").to_bytes() == "pässword".encode()
