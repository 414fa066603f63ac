"""AWS_MSK_IAM: botocore's signatures, and credentials from each of AWS's places."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from botocore import auth as botocore_auth  # type: ignore[import-untyped]
from botocore.awsrequest import AWSRequest  # type: ignore[import-untyped]
from botocore.credentials import Credentials  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from aiokwire.clock import wall_ms
from aiokwire.errors import AuthenticationFailed, ConnectionFailed
from aiokwire.security import aws_credentials, new_login
from aiokwire.security.aws_credentials import AwsCredentials, find_credentials, find_region
from aiokwire.security.aws_msk_iam import AwsMskIamClient, region_of, signed_payload
from aiokwire.security.secret import Secret
from tests.security.options import options
from tests.security.provider import Answer, IdentityProvider, identity_provider

HOST = "b-1.demo.abc123.c2.kafka.eu-central-1.amazonaws.com"
NOW = 1_700_000_000
DAMAGED = [b"", b"{}", b"[]", b"no", b'{"version": "1999_01_01"}', b"[" * 50_000]


def presigned(host: str, region: str, credentials: AwsCredentials, time: str) -> dict[str, str]:
    """Return the query of botocore's presigned request."""
    request = AWSRequest("GET", f"https://{host}/", params={"Action": "kafka-cluster:Connect"})
    token = credentials.session_token.reveal() or None
    keys = Credentials(credentials.access_key_id, credentials.secret_access_key.reveal(), token)
    signer = botocore_auth.SigV4QueryAuth(keys, "kafka-cluster", region, expires=900)
    signer.add_auth(request)
    found = parse_qs(urlsplit(request.url).query)
    assert found["X-Amz-Date"] == [time]
    return {name.lower(): values[0] for name, values in found.items()}


@given(
    key=st.from_regex(r"[A-Z0-9]{16,20}", fullmatch=True),
    secret=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=40),
    token=st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=60),
    region=st.sampled_from(["eu-central-1", "us-gov-west-1", "cn-north-1"]),
)
def test_the_signature_is_botocores(key: str, secret: str, token: str, region: str) -> None:
    credentials = AwsCredentials(key, Secret(secret), Secret(token))
    with pytest.MonkeyPatch.context() as patch:
        from datetime import UTC, datetime

        patch.setattr(botocore_auth, "get_current_datetime", lambda **_: datetime.fromtimestamp(NOW, UTC))
        expected = presigned(HOST, region, credentials, "20231114T221320Z")
    payload = signed_payload(HOST, region, credentials, NOW)
    assert {name: payload.pop(name) for name in ("version", "host")} == {"version": "2020_10_22", "host": HOST}
    assert payload.pop("user-agent").startswith("aiokwire/")
    assert payload == expected


@pytest.mark.parametrize(
    ("host", "region"),
    [
        (HOST, "eu-central-1"),
        ("boot-x.c1.kafka-serverless.us-east-1.amazonaws.com", "us-east-1"),
        ("b-1.demo.kafka.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("broker.example", ""),
        ("kafka.us-east-1.amazonaws.com.evil.example", ""),
    ],
)
def test_the_region_is_in_the_brokers_name(host: str, region: str) -> None:
    assert region_of(host) == region


async def test_the_exchange_ends_with_the_brokers_confirmation() -> None:
    client = AwsMskIamClient(HOST, "eu-central-1", AwsCredentials("AKID", Secret("secret")))
    payload = json.loads(await client.evaluate_challenge(b""))
    assert payload["host"] == HOST
    assert "secret" not in json.dumps(payload)
    assert not client.is_complete
    assert await client.evaluate_challenge(b'{"version":"2020_10_22","request-id":"x"}') == b""
    assert client.is_complete
    with pytest.raises(AuthenticationFailed):
        await client.evaluate_challenge(b"more")


@pytest.mark.parametrize("challenge", DAMAGED, ids=range(len(DAMAGED)))
async def test_another_confirmation_is_an_error(challenge: bytes) -> None:
    client = AwsMskIamClient(HOST, "eu-central-1", AwsCredentials("AKID", Secret("secret")))
    await client.evaluate_challenge(b"")
    with pytest.raises(AuthenticationFailed, match="AWS_MSK_IAM confirmation"):
        await client.evaluate_challenge(challenge)


# --- credentials ------------------------------------------------------------------------------------------------------


async def test_the_options_are_used_first() -> None:
    login = new_login(
        options(
            "AWS_MSK_IAM",
            sasl_aws_access_key_id="AKID",
            sasl_aws_secret_access_key="secret",
            sasl_aws_session_token="session",
        )
    )
    payload = json.loads(await (await login.new_client(HOST)).evaluate_challenge(b""))
    assert payload["x-amz-credential"].startswith("AKID/")
    assert "/eu-central-1/kafka-cluster/" in payload["x-amz-credential"]
    assert payload["x-amz-security-token"] == "session"


async def test_botocore_is_used_if_it_is_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "FROMENV")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_REGION", "us-west-2")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    login = new_login(options("AWS_MSK_IAM"))
    payload = json.loads(await (await login.new_client("broker.example")).evaluate_challenge(b""))
    assert payload["x-amz-credential"].startswith("FROMENV/")
    assert "/us-west-2/" in payload["x-amz-credential"]


async def test_an_unknown_region_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    login = new_login(options("AWS_MSK_IAM", sasl_aws_access_key_id="A", sasl_aws_secret_access_key="s"))
    with pytest.raises(AuthenticationFailed, match=r"the region of broker\.example is unknown: set sasl_aws_region"):
        await login.new_client("broker.example")


def test_the_environment_is_before_the_profile(tmp_path: Path) -> None:
    environment = {
        "HOME": str(tmp_path),
        "AWS_ACCESS_KEY_ID": "A",
        "AWS_SECRET_ACCESS_KEY": "s",
        "AWS_SESSION_TOKEN": "t",
    }
    assert find_credentials(environment=environment) == AwsCredentials("A", Secret("s"), Secret("t"), math.inf)


def test_profiles_are_read_from_the_files_of_the_command_line(tmp_path: Path) -> None:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "config").write_text("[default]\nregion = eu-west-1\n[profile dev]\nregion=us-east-2\n")
    (tmp_path / ".aws" / "credentials").write_text(
        "[default]\naws_access_key_id = A\naws_secret_access_key = s\n"
        "[dev]\naws_access_key_id = D\naws_secret_access_key = %x\naws_session_token = t\n"
    )
    environment = {"HOME": str(tmp_path)}
    assert find_credentials(environment=environment).access_key_id == "A"
    assert find_credentials("dev", environment=environment) == AwsCredentials("D", Secret("%x"), Secret("t"))
    assert find_credentials(environment=environment | {"AWS_PROFILE": "dev"}).access_key_id == "D"
    assert find_region(environment=environment) == "eu-west-1"
    assert find_region("dev", environment=environment) == "us-east-2"
    assert find_region(environment=environment | {"AWS_REGION": "x"}) == "x"
    with pytest.raises(AuthenticationFailed, match="profile 'none' has no access key"):
        find_credentials("none", environment=environment)


def test_a_malformed_file_is_an_error_without_its_text(tmp_path: Path) -> None:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text("aws_secret_access_key = hidden\n")
    with pytest.raises(AuthenticationFailed, match="is malformed") as caught:
        find_credentials("dev", environment={"HOME": str(tmp_path)})
    assert "hidden" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.fixture
def metadata() -> Iterator[IdentityProvider]:
    with identity_provider() as running:
        yield running


def found(**more: Any) -> Answer:
    usual = {"AccessKeyId": "A", "SecretAccessKey": "s", "Token": "t", "Expiration": "2033-05-18T03:33:20Z"}
    return Answer(200, json.dumps(usual | more).encode())


def test_a_containers_credentials_expire(metadata: IdentityProvider, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("authorized\n")
    environment = {
        "HOME": str(tmp_path),
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": metadata.url + "/v1/credentials",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(tmp_path / "token"),
    }
    metadata.answers = [found()]
    assert find_credentials(environment=environment) == AwsCredentials("A", Secret("s"), Secret("t"), 2_000_000_000.0)
    ((path, _, headers),) = metadata.requests
    assert (path, headers["authorization"]) == ("/v1/credentials", "authorized")


def test_an_instances_role_is_asked_with_a_session_token(metadata: IdentityProvider, tmp_path: Path) -> None:
    metadata.answers = [Answer(200, b"imds"), Answer(200, b"my-role\n"), found()]
    credentials = find_credentials(environment={"HOME": str(tmp_path)}, instance=metadata.url + "/latest")
    assert credentials.access_key_id == "A"
    assert [path for path, _, _ in metadata.requests] == [
        "/latest/api/token",
        "/latest/meta-data/iam/security-credentials/",
        "/latest/meta-data/iam/security-credentials/my-role",
    ]
    assert {headers.get("x-aws-ec2-metadata-token") for _, _, headers in metadata.requests[1:]} == {"imds"}


@pytest.mark.parametrize("answer", [Answer(500, b""), Answer(200, b"{}"), Answer(200, b"no"), found(Expiration="soon")])
def test_a_metadata_service_that_fails_is_an_error_that_may_pass(
    metadata: IdentityProvider, tmp_path: Path, answer: Answer
) -> None:
    metadata.answers = [answer]
    environment = {"HOME": str(tmp_path), "AWS_CONTAINER_CREDENTIALS_FULL_URI": metadata.url}
    with pytest.raises(ConnectionFailed, match="the container's credentials"):
        find_credentials(environment=environment)


def test_without_credentials_the_error_names_the_options(tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path), "AWS_EC2_METADATA_DISABLED": "true"}
    with pytest.raises(AuthenticationFailed, match="no AWS credentials were found: set sasl_aws_access_key_id"):
        find_credentials(environment=environment)


async def test_temporary_credentials_are_refreshed_before_they_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0

    def find(_profile: str) -> AwsCredentials:
        nonlocal calls
        calls += 1
        return AwsCredentials("A", Secret("s"), Secret("t"), wall_ms() / 1000 + 3600)

    monkeypatch.setattr(aws_credentials, "find_credentials", find)
    login = new_login(options("AWS_MSK_IAM", sasl_aws_region="eu-central-1"))
    for _ in range(3):
        await login.new_client(HOST)
    assert calls == 1
    login.invalidate()
    await login.new_client(HOST)
    assert calls == 2
