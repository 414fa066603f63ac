"""Tokens of clouds: requests to their metadata services, played by a server on loopback."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from aiokwire.clock import wall_ms
from aiokwire.errors import AuthenticationFailed, ConnectionFailed
from aiokwire.security import new_login, providers
from aiokwire.security.jwt import decoded_bytes, unverified_claims
from aiokwire.security.oauthbearer import parse_client_first
from aiokwire.security.providers import AwsMskTokens, AzureTokens, GoogleTokens
from tests.security.options import options
from tests.security.provider import Answer, IdentityProvider, identity_provider

RESOURCE = "https://demo.servicebus.windows.net"


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[IdentityProvider]:
    """A metadata service; the clouds' packages count as not installed."""
    monkeypatch.setattr(providers, "_is_installed", lambda _package: False)
    for name in ("AZURE_FEDERATED_TOKEN_FILE", "IDENTITY_ENDPOINT", "IDENTITY_HEADER"):
        monkeypatch.delenv(name, raising=False)
    with identity_provider() as running:
        yield running


def token(**more: Any) -> Answer:
    return Answer(200, json.dumps({"access_token": "abc", "expires_on": "2000000000"} | more).encode())


async def test_azures_managed_identity_logs_in(cloud: IdentityProvider) -> None:
    cloud.answers = [token()]
    source = AzureTokens(RESOURCE + "/.default", client_id="id", instance=cloud.url)
    login = new_login(options("OAUTHBEARER", sasl_oauth_token_provider=source))
    for _ in range(2):
        client = await login.new_client("demo.servicebus.windows.net")
        _, sent, _ = parse_client_first(await client.evaluate_challenge(b""))
        assert sent.reveal() == "abc"
    ((path, _, headers),) = cloud.requests
    assert path == "/metadata/identity/oauth2/token"
    assert headers["metadata"] == "true"


def test_azures_app_service_has_its_own_endpoint(cloud: IdentityProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IDENTITY_ENDPOINT", cloud.url + "/msi")
    monkeypatch.setenv("IDENTITY_HEADER", "header-secret")
    cloud.answers = [token()]
    assert AzureTokens(RESOURCE)().expires_at == 2_000_000_000.0
    ((path, _, headers),) = cloud.requests
    assert (path, headers["x-identity-header"]) == ("/msi", "header-secret")


def test_azures_workload_identity_sends_its_file(
    cloud: IdentityProvider, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("assertion\n")
    monkeypatch.setenv("AZURE_FEDERATED_TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.setenv("AZURE_AUTHORITY_HOST", cloud.url + "/")
    with pytest.raises(AuthenticationFailed, match="AZURE_TENANT_ID"):
        AzureTokens(RESOURCE)()
    monkeypatch.setenv("AZURE_TENANT_ID", "tenant")
    monkeypatch.setenv("AZURE_CLIENT_ID", "client")
    cloud.answers = [Answer(200, b'{"access_token": "abc", "expires_in": 3599}')]
    found = AzureTokens(RESOURCE)()
    assert abs(found.expires_at - wall_ms() / 1000 - 3599) < 30
    ((path, form, _),) = cloud.requests
    assert path == "/tenant/oauth2/v2.0/token"
    assert (form["client_assertion"], form["scope"], form["client_id"]) == (
        "assertion",
        RESOURCE + "/.default",
        "client",
    )


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer(400, b'{"error": "invalid_resource"}'), AuthenticationFailed),
        (Answer(503, b""), ConnectionFailed),
        (Answer(429, b"{}"), ConnectionFailed),
        (Answer(200, b"no"), ConnectionFailed),
        (Answer(200, b"{}"), ConnectionFailed),
    ],
)
def test_a_metadata_service_that_fails_is_named(
    cloud: IdentityProvider, answer: Answer, error: type[Exception]
) -> None:
    cloud.answers = [answer]
    with pytest.raises(error, match="Azure's metadata service"):
        AzureTokens(RESOURCE, instance=cloud.url)()


def test_googles_tokens_have_the_form_of_its_brokers(cloud: IdentityProvider) -> None:
    cloud.answers = [Answer(200, b'{"access_token": "ya29.x", "expires_in": 3599}'), Answer(200, b"me@example\n")]
    found = GoogleTokens(instance=cloud.url)()
    claims = unverified_claims(found.value)
    assert {name: claims[name] for name in ("iss", "scope", "sub")} == {
        "iss": "Google",
        "scope": "kafka",
        "sub": "me@example",
    }
    assert decoded_bytes(found.value.reveal().split(".")[2]) == b"ya29.x"
    assert found.expires_at == claims["exp"]
    assert {headers["metadata-flavor"] for _, _, headers in cloud.requests} == {"Google"}


def test_azures_package_is_used_if_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Credential:
        def __init__(self, **given: str) -> None:
            assert given == {"managed_identity_client_id": "id"}

        def __enter__(self) -> Credential:
            return self

        def __exit__(self, *_: object) -> None: ...

        def get_token(self, scope: str) -> object:
            assert scope == RESOURCE + "/.default"
            return SimpleNamespace(token="abc", expires_on=123)

    package, module = ModuleType("azure"), ModuleType("azure.identity")
    module.DefaultAzureCredential = Credential  # type: ignore[attr-defined]
    package.identity = module  # type: ignore[attr-defined]
    monkeypatch.setattr(providers, "_is_installed", lambda name: name == "azure.identity")
    monkeypatch.setitem(__import__("sys").modules, "azure", package)
    monkeypatch.setitem(__import__("sys").modules, "azure.identity", module)
    assert AzureTokens(RESOURCE, client_id="id")().expires_at == 123.0


def test_msks_tokens_are_presigned_addresses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    found = AwsMskTokens()()
    text = found.value.reveal()
    url = urlsplit(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode())
    query = parse_qs(url.query)
    assert (url.scheme, url.netloc, url.path) == ("https", "kafka.eu-central-1.amazonaws.com", "/")
    assert query["Action"] == ["kafka-cluster:Connect"]
    assert query["X-Amz-Credential"][0].startswith("AKID/")
    assert query["User-Agent"][0].startswith("aiokwire/")
    assert "hidden" not in url.query
    assert abs(found.expires_at - wall_ms() / 1000 - 900) < 30
