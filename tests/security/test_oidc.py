"""Tokens from a token endpoint: both grants, retries, rejected requests, bounds."""

from __future__ import annotations

import base64
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from aiokwire.clock import wall_ms
from aiokwire.errors import AuthenticationFailed, ConfigurationError, ConnectionFailed
from aiokwire.security import SecurityConfig, new_login
from aiokwire.security.http import check_url, is_loopback, request
from aiokwire.security.jwt import decoded_bytes, decoded_object, is_signed_by
from aiokwire.security.oauthbearer import parse_client_first
from aiokwire.security.oidc import JWT_BEARER, TokenEndpoint
from tests.security.provider import EC_KEY, RSA_KEYS, Answer, IdentityProvider, identity_provider, new_token, pem
from tests.simulation.loop import SimLoop, run


@pytest.fixture
def provider() -> Iterator[IdentityProvider]:
    with identity_provider() as running:
        yield running


def options(url: str, **more: Any) -> SecurityConfig:
    defaults: dict[str, Any] = {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauthbearer_token_endpoint_url": url,
        "sasl_login_retry_backoff_ms": 1,
    }
    if more.get("sasl_oauthbearer_grant") != "jwt-bearer":
        defaults["sasl_oauthbearer_client_credentials_client_id"] = "app"
        defaults["sasl_oauthbearer_client_credentials_client_secret"] = "app-secret"
    return SecurityConfig(**defaults | more)


async def test_client_credentials_return_a_token_with_its_expiry(provider: IdentityProvider) -> None:
    token = await TokenEndpoint(options(provider.url + "/token", sasl_oauthbearer_scope="a b")).token()
    ((path, form, headers),) = provider.requests
    assert path == "/token"
    assert form == {"grant_type": "client_credentials", "scope": "a b"}
    assert headers["content-type"] == "application/x-www-form-urlencoded"
    assert abs(token.expires_at - wall_ms() / 1000 - 3600) < 30
    assert decoded_object(token.value.reveal().split(".")[1])["sub"] == "app"


@pytest.mark.parametrize(("encodes", "sent"), [(False, "app:a+b/c:d"), (True, "app:a%2Bb%2Fc%3Ad")])
async def test_the_id_and_the_secret_are_encoded_on_request(
    provider: IdentityProvider, encodes: bool, sent: str
) -> None:
    more = {
        "sasl_oauthbearer_client_credentials_client_secret": "a+b/c:d",
        "sasl_oauthbearer_header_urlencode": encodes,
    }
    with pytest.raises(AuthenticationFailed):  # the provider has another secret
        await TokenEndpoint(options(provider.url + "/token", **more)).token()
    ((_, _, headers),) = provider.requests
    assert base64.b64decode(headers["authorization"].removeprefix("Basic ")).decode() == sent


async def test_logins_share_the_token_and_send_the_extensions(provider: IdentityProvider) -> None:
    login = new_login(options(provider.url + "/token", sasl_oauthbearer_extensions={"poolId": "p"}))
    for _ in range(3):
        client = await login.new_client("broker")
        _, token, extensions = parse_client_first(await client.evaluate_challenge(b""))
        assert extensions == {"poolId": "p"}
        assert token.reveal().count(".") == 2
    assert provider.count["/token"] == 1
    login.invalidate()
    await login.new_client("broker")
    assert provider.count["/token"] == 2


@pytest.mark.parametrize(("expires_in", "expected"), [(60, 60), ("60", 60), (None, 3600), ("soon", 3600)])
async def test_the_expiry_is_the_earlier_of_the_response_and_the_token(
    provider: IdentityProvider, expires_in: object, expected: float
) -> None:
    provider.expires_in = expires_in
    token = await TokenEndpoint(options(provider.url + "/token")).token()
    assert abs(token.expires_at - wall_ms() / 1000 - expected) < 30


async def test_a_wrong_secret_is_final_and_names_the_providers_reason(provider: IdentityProvider) -> None:
    config = options(provider.url + "/token?key=hidden", sasl_oauthbearer_client_credentials_client_secret="wrong-one")
    with pytest.raises(AuthenticationFailed) as caught:
        await TokenEndpoint(config).token()
    text = str(caught.value)
    assert r"/token responded with status 401 (invalid_client: wrong\nsecret): check the client id" in text
    assert "wrong-one" not in text
    assert "hidden" not in text
    assert provider.count["/token"] == 1


@pytest.mark.parametrize("status", [500, 503, 429])
async def test_a_failing_endpoint_is_retried(provider: IdentityProvider, status: int) -> None:
    provider.answers = [Answer(status, b"busy")] * 2
    await TokenEndpoint(options(provider.url + "/token")).token()
    assert provider.count["/token"] == 3


def test_an_endpoint_that_does_not_recover_is_an_error_that_may_pass(provider: IdentityProvider) -> None:
    provider.answers = [Answer(503, b"")] * 100
    config = options(provider.url + "/token", sasl_login_retry_backoff_ms=100, sasl_login_retry_backoff_max_ms=10_000)
    with pytest.raises(ConnectionFailed, match=r"no OAuth token after \d+ attempts in .* responded with status 503"):
        run(SimLoop(seed=1), TokenEndpoint(config).token())  # the pauses take no time
    assert 5 <= provider.count["/token"] <= 9


@pytest.mark.parametrize(
    "answer",
    [
        Answer(200, b"<html>"),
        Answer(200, b"[]"),
        Answer(200, b"{}"),
        Answer(200, b'{"access_token": 5}'),
        Answer(200, b'{"access_token": ""}'),
        Answer(200, b"[" * 100_000),
        Answer(200, b"x" * 1_100_000),
        Answer(302, b"", {"Location": "http://127.0.0.1:1/"}),
    ],
)
async def test_other_responses_are_errors(provider: IdentityProvider, answer: Answer) -> None:
    provider.answers = [answer]
    with pytest.raises(ConnectionFailed, match="/token"):
        await TokenEndpoint(options(provider.url + "/token", sasl_login_retry_backoff_max_ms=1)).token()
    assert provider.count == {"/token": 1}


async def test_a_closed_port_is_an_error_that_may_pass() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    config = options(f"http://127.0.0.1:{port}/token", sasl_login_retry_backoff_max_ms=1)
    with pytest.raises(ConnectionFailed, match="ConnectionRefusedError"):
        await TokenEndpoint(config).token()


async def test_the_first_failure_is_logged_and_the_others_are_not(
    provider: IdentityProvider, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint = TokenEndpoint(options(provider.url + "/token"))
    for _ in range(2):  # a line per incident
        provider.answers = [Answer(503, b"")] * 3
        await endpoint.token()
    lines = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(lines) == 2
    assert re.match(
        r"no OAuth token yet, retrying for up to \d+\.\d s: http.*/token responded with status 503", lines[0]
    )


@pytest.mark.parametrize("is_silent", [False, True])
async def test_the_cause_is_named_before_the_callers_deadline(provider: IdentityProvider, is_silent: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, anyio.move_on_after(0.5) as scope:
        provider.answers = [Answer(503, b"")] * 1000
        url = f"http://127.0.0.1:{silent.getsockname()[1]}" if is_silent else provider.url
        with pytest.raises(ConnectionFailed, match="no response in time" if is_silent else "status 503"):
            await TokenEndpoint(options(url + "/token")).token()
    assert not scope.cancelled_caught


async def test_a_silent_endpoint_ends_by_the_read_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/token"
        config = options(url, sasl_login_read_timeout_ms=50, sasl_login_retry_backoff_max_ms=1)
        with pytest.raises(ConnectionFailed, match="no response in time"):
            await TokenEndpoint(config).token()


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("http://idp.example/token", "https only"),
        ("ftp://idp.example/token", "not an address"),
        ("https://user:secret@idp.example/", "without a user name"),
        ("https://", "not an address"),
        ("https://host:99999/", "not an address"),
        ("https://[::1/", "not an address"),
    ],
)
def test_only_https_addresses_are_allowed(url: str, text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        check_url(url)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.8.8", "::1"])
def test_loopback_needs_no_tls(host: str) -> None:
    assert is_loopback(host)
    check_url(f"http://[{host}]/" if ":" in host else f"http://{host}/")
    assert not is_loopback("10.0.0.1")
    assert not is_loopback("localhost.example")


def test_a_response_that_drips_is_bounded_in_total(provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(0, 10**9, 6000))  # each reading of the clock is 6 s later
    monkeypatch.setattr("aiokwire.security.http.wall_ms", now.__next__)
    provider.answers = [Answer(200, b"x" * 400_000)]
    with pytest.raises(ConnectionFailed, match="no response in time"):
        request("GET", provider.url)


# --- assertions -------------------------------------------------------------------------------------------------------


def bearer(url: str, **more: Any) -> SecurityConfig:
    return options(url, sasl_oauthbearer_grant="jwt-bearer", **more)


async def test_an_assertion_file_is_read_for_each_request(provider: IdentityProvider, tmp_path: Path) -> None:
    file = tmp_path / "assertion.jwt"
    endpoint = TokenEndpoint(bearer(provider.url + "/token", sasl_oauthbearer_assertion_file=str(file)))
    for subject in ("alice", "bob"):
        file.write_text(new_token({"sub": subject}) + "\n")
        token = await endpoint.token()
        assert decoded_object(token.value.reveal().split(".")[1])["sub"] == subject
    assert {form["grant_type"] for _, form, _ in provider.requests} == {JWT_BEARER}


@pytest.mark.parametrize(("algorithm", "key"), [("RS256", RSA_KEYS[0]), ("ES256", EC_KEY)])
@pytest.mark.parametrize("passphrase", ["", "pass"])
async def test_an_assertion_is_signed_with_the_private_key(
    provider: IdentityProvider, tmp_path: Path, algorithm: str, key: Any, passphrase: str
) -> None:
    file, template = tmp_path / "key.pem", tmp_path / "template.json"
    file.write_text(pem(key, passphrase))
    template.write_text(json.dumps({"header": {"kid": "my-key"}, "payload": {"tenant": "t", "iss": "template"}}))
    config = bearer(
        provider.url + "/token",
        sasl_oauthbearer_assertion_private_key_file=str(file),
        sasl_oauthbearer_assertion_private_key_passphrase=passphrase or None,
        sasl_oauthbearer_assertion_algorithm=algorithm,
        sasl_oauthbearer_assertion_template_file=str(template),
        sasl_oauthbearer_assertion_claim_iss="me",
        sasl_oauthbearer_assertion_claim_sub="alice",
        sasl_oauthbearer_assertion_claim_aud="idp",
        sasl_oauthbearer_assertion_claim_jti_include=True,
    )
    await TokenEndpoint(config).token()
    parts = provider.requests[0][1]["assertion"].split(".")
    header, claims = decoded_object(parts[0]), decoded_object(parts[1])
    assert header == {"kid": "my-key", "alg": algorithm, "typ": "JWT"}
    assert {name: claims[name] for name in ("iss", "sub", "aud", "tenant")} == {
        "iss": "me",
        "sub": "alice",
        "aud": "idp",
        "tenant": "t",
    }
    assert claims["nbf"] < claims["iat"] < claims["exp"]
    assert claims["jti"]
    assert is_signed_by(algorithm, key.public_key(), ".".join(parts[:2]).encode(), decoded_bytes(parts[2]))


@pytest.mark.parametrize(
    ("content", "more", "text"),
    [
        ("no key", {}, "cannot be loaded"),
        (pem(RSA_KEYS[0], "pass"), {}, "cannot be loaded"),
        (pem(RSA_KEYS[0]), {"sasl_oauthbearer_assertion_algorithm": "ES256"}, "does not fit the algorithm 'ES256'"),
        (pem(EC_KEY), {}, "does not fit the algorithm 'RS256'"),
    ],
)
async def test_a_key_that_cannot_sign_is_an_error_without_its_text(
    tmp_path: Path, content: str, more: dict[str, Any], text: str
) -> None:
    file = tmp_path / "key.pem"
    file.write_text(content)
    config = bearer("http://127.0.0.1:1/", sasl_oauthbearer_assertion_private_key_file=str(file), **more)
    with pytest.raises(AuthenticationFailed, match=text) as caught:
        await TokenEndpoint(config).token()
    assert "BEGIN" not in str(caught.value)


async def test_a_file_that_cannot_be_used_is_an_error_that_names_the_option(tmp_path: Path) -> None:
    file = tmp_path / "assertion"
    config = bearer("http://127.0.0.1:1/", sasl_oauthbearer_assertion_file=str(file))
    with pytest.raises(AuthenticationFailed, match=r"sasl_oauthbearer_assertion_file .* cannot be read: No such file"):
        await TokenEndpoint(config).token()
    file.write_text("secret")
    with pytest.raises(AuthenticationFailed, match="does not contain a JWT") as caught:
        await TokenEndpoint(config).token()
    assert "secret'" not in str(caught.value)
    file.write_bytes(b"\xff" * 5)
    with pytest.raises(AuthenticationFailed, match="is not text"):
        await TokenEndpoint(config).token()
    file.write_bytes(b"x" * 1_100_000)
    with pytest.raises(AuthenticationFailed, match="exceeds 1048576 bytes"):
        await TokenEndpoint(config).token()
