"""Credentials of AWS: options, environment, profile, container, instance; botocore if installed.

Without botocore, profiles with SSO, `role_arn` or `credential_process`, and web identities are not
supported. Not tried against the real services.
"""

from __future__ import annotations

import configparser
import importlib.util
import math
import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from aiokwire.errors import AuthenticationFailed, ConnectionFailed
from aiokwire.security.http import HttpOptions, HttpResponse, request
from aiokwire.security.secret import Secret

INSTANCE: Final = "http://169.254.169.254/latest"
CONTAINER_HOST: Final = "169.254.170.2"
# The metadata services: link-local addresses, which the host or the container agent answers.
METADATA_HOSTS: Final = frozenset(
    {"169.254.169.254", CONTAINER_HOST, "169.254.170.23", "[fd00:ec2::23]", "fd00:ec2::23"}
)
OPTIONS: Final = HttpOptions(connect_timeout=1.0, read_timeout=2.0, plain_hosts=METADATA_HOSTS)
ADVICE: Final = (
    "set sasl_aws_access_key_id and sasl_aws_secret_access_key, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
    "sasl_aws_profile; pip install botocore for SSO and roles"
)


class AwsCredentials(NamedTuple):
    """An access key, for a limited time if it has a session token."""

    access_key_id: str
    secret_access_key: Secret
    session_token: Secret = Secret("")
    expires_at: float = math.inf  # seconds since the epoch


def find_credentials(
    profile: str = "", *, environment: Mapping[str, str] | None = None, instance: str = INSTANCE
) -> AwsCredentials:
    """Return the credentials of a profile, or the first that the environment has; blocks.

    Raises:
        AuthenticationFailed: none was found.
        ConnectionFailed: the metadata service fails.
    """
    if environment is None and importlib.util.find_spec("botocore") is not None:
        return _from_botocore(profile)
    variables = os.environ if environment is None else environment
    if profile:
        found = _from_profile(profile, variables)
        if found is None:
            raise AuthenticationFailed(f"the AWS profile {profile!r} has no access key: {ADVICE}")
        return found
    found = (
        _from_environment(variables)
        or _from_profile(variables.get("AWS_PROFILE", "default"), variables)
        or _from_container(variables)
        or _from_instance(variables, instance)
    )
    if found is None:
        raise AuthenticationFailed(f"no AWS credentials were found: {ADVICE}")
    return found


def find_region(profile: str = "", *, environment: Mapping[str, str] | None = None) -> str:
    """Return the region of the environment or the profile, empty if there is none; blocks."""
    variables = os.environ if environment is None else environment
    region = variables.get("AWS_REGION") or variables.get("AWS_DEFAULT_REGION")
    return region or _settings(profile or variables.get("AWS_PROFILE", "default"), variables).get("region", "")


def _from_botocore(profile: str) -> AwsCredentials:
    import botocore.session  # type: ignore[import-untyped]
    from botocore.exceptions import BotoCoreError  # type: ignore[import-untyped]

    try:
        found = botocore.session.Session(profile=profile or None).get_credentials()
        frozen = found.get_frozen_credentials() if found is not None else None
    except BotoCoreError as error:
        raise ConnectionFailed(f"botocore found no AWS credentials: {error}", stage="sasl") from error
    if frozen is None:
        raise AuthenticationFailed(f"botocore found no AWS credentials: {ADVICE}")
    expiry = getattr(found, "_expiry_time", None)  # of temporary credentials; botocore has no public name for it
    expires_at = expiry.timestamp() if isinstance(expiry, datetime) else math.inf
    return AwsCredentials(frozen.access_key, Secret(frozen.secret_key), Secret(frozen.token or ""), expires_at)


def _from_environment(variables: Mapping[str, str]) -> AwsCredentials | None:
    key, secret = variables.get("AWS_ACCESS_KEY_ID"), variables.get("AWS_SECRET_ACCESS_KEY")
    if not key or not secret:
        return None
    return AwsCredentials(key, Secret(secret), Secret(variables.get("AWS_SESSION_TOKEN", "")))


def _from_profile(profile: str, variables: Mapping[str, str]) -> AwsCredentials | None:
    settings = _settings(profile, variables)
    key, secret = settings.get("aws_access_key_id"), settings.get("aws_secret_access_key")
    if not key or not secret:
        return None
    return AwsCredentials(key, Secret(secret), Secret(settings.get("aws_session_token", "")))


def _settings(profile: str, variables: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a profile in the files of the AWS command line."""
    home = Path(variables.get("HOME", "~")).expanduser() / ".aws"
    settings: dict[str, str] = {}
    for variable, name, section in (
        ("AWS_CONFIG_FILE", "config", profile if profile == "default" else f"profile {profile}"),
        ("AWS_SHARED_CREDENTIALS_FILE", "credentials", profile),
    ):
        parser = configparser.RawConfigParser(default_section="")
        path = variables.get(variable) or str(home / name)
        try:
            parser.read(path)
        except (configparser.Error, UnicodeDecodeError, OSError):  # the error's text may contain a line with a secret
            raise AuthenticationFailed(f"the AWS file {path!r} cannot be read: it is malformed") from None
        if parser.has_section(section):
            settings |= dict(parser.items(section))
    return settings


def _from_container(variables: Mapping[str, str]) -> AwsCredentials | None:
    relative, full = (variables.get(f"AWS_CONTAINER_CREDENTIALS_{kind}_URI") for kind in ("RELATIVE", "FULL"))
    if not relative and not full:
        return None
    url = f"http://{CONTAINER_HOST}{relative}" if relative else str(full)
    token = variables.get("AWS_CONTAINER_AUTHORIZATION_TOKEN", "")
    if file := variables.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"):
        try:
            token = Path(file).read_text().strip()
        except OSError as error:
            raise AuthenticationFailed(f"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE {file!r}: {error.strerror}") from error
    headers = {"Authorization": token} if token else {}
    return _parsed(request("GET", url, headers=headers, options=OPTIONS), "the container's credentials")


def _from_instance(variables: Mapping[str, str], instance: str) -> AwsCredentials | None:
    """Ask the instance's metadata service (IMDSv2)."""
    if variables.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
        return None
    try:
        token = request(
            "PUT",
            f"{instance}/api/token",
            headers={"X-aws-ec2-metadata-token-ttl-seconds": "21600", "Content-Length": "0"},
            options=OPTIONS,
        )
    except ConnectionFailed:
        return None  # not an instance of EC2
    headers = {"X-aws-ec2-metadata-token": token.body.decode(errors="replace").strip()}
    path = f"{instance}/meta-data/iam/security-credentials/"
    roles = request("GET", path, headers=headers, options=OPTIONS)
    if roles.status == 404:
        return None
    role = roles.body.decode(errors="replace").strip().split("\n")[0]
    return _parsed(request("GET", path + role, headers=headers, options=OPTIONS), f"the instance's role {role!r}")


def _parsed(response: HttpResponse, what: str) -> AwsCredentials:
    if response.status != 200:
        raise ConnectionFailed(f"{what}: the metadata service responded with status {response.status}", stage="sasl")
    try:
        found: dict[str, Any] = response.json()
        expires_at = datetime.fromisoformat(found["Expiration"]).timestamp() if found.get("Expiration") else math.inf
        token = Secret(found.get("Token") or "")
        return AwsCredentials(found["AccessKeyId"], Secret(found["SecretAccessKey"]), token, expires_at)
    except (ValueError, KeyError, TypeError):
        raise ConnectionFailed(f"{what}: the metadata service's response is malformed", stage="sasl") from None
