"""OAuth tokens of Azure, Google Cloud and AWS, for `sasl_oauth_token_provider`.

Each class is a callable that blocks; the login runs it in a thread and refreshes the token before
it expires. The cloud's own package is used if it is installed; without it, the metadata service of
the machine. Not tried against the real services.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

from aiokwire._version import __version__
from aiokwire.clock import wall_ms
from aiokwire.errors import AuthenticationFailed, ConnectionFailed
from aiokwire.security.aws_credentials import METADATA_HOSTS, find_credentials, find_region
from aiokwire.security.aws_msk_iam import VALID_SECONDS, signed_query
from aiokwire.security.http import HttpOptions, HttpResponse, request
from aiokwire.security.jwt import MAX_TOKEN, encoded_bytes
from aiokwire.security.sasl import OAuthToken
from aiokwire.security.secret import Secret

AZURE_INSTANCE: Final = "http://169.254.169.254"
AZURE_AUTHORITY: Final = "https://login.microsoftonline.com"
GOOGLE_INSTANCE: Final = "http://metadata.google.internal"
GOOGLE_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
JWT_ASSERTION: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
OPTIONS: Final = HttpOptions(
    connect_timeout=2.0, read_timeout=5.0, plain_hosts=METADATA_HOSTS | {"metadata.google.internal"}
)


def _is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # the parent is not installed
        return False


def _json(response: HttpResponse, what: str) -> dict[str, Any]:
    """Return the object of a response.

    Raises: AuthenticationFailed: the request was rejected; ConnectionFailed: the service fails.
    """
    if response.status >= 500 or response.status == 429:
        raise ConnectionFailed(f"{what} responded with status {response.status}", stage="sasl")
    try:
        found = response.json()
    except ValueError:
        raise ConnectionFailed(f"{what} responded with status {response.status}, not with JSON", stage="sasl") from None
    if response.status != 200:
        reason = str(found.get("error_description") or found.get("error") or "")[:300]
        raise AuthenticationFailed(f"{what} responded with status {response.status}: {reason}")
    return found


def _token(found: dict[str, Any], what: str) -> OAuthToken:
    """Return the token of a response with `access_token` and `expires_on` or `expires_in`."""
    value = found.get("access_token")
    if not isinstance(value, str) or not 0 < len(value) <= MAX_TOKEN:
        raise ConnectionFailed(f"{what} returned no access_token", stage="sasl")
    try:
        expires_at = float(found["expires_on"]) if "expires_on" in found else _now() + float(found["expires_in"])
    except (KeyError, TypeError, ValueError):
        expires_at = math.inf
    return OAuthToken(Secret(value), expires_at)


def _now() -> float:
    return wall_ms() / 1000


class AzureTokens:
    """Tokens of Microsoft Entra ID, such as for Event Hubs.

    By `azure-identity` if it is installed; else a workload identity (AKS), App Service, or the
    managed identity of the machine.
    """

    def __init__(self, resource: str, *, client_id: str = "", instance: str = AZURE_INSTANCE) -> None:
        """`resource`: as "https://NAMESPACE.servicebus.windows.net"; `client_id`: of an identity
        that the user assigned."""
        self._resource = resource.removesuffix("/.default").rstrip("/")
        self._client_id = client_id
        self._instance = instance

    def __call__(self) -> OAuthToken:
        """Return a token; blocks."""
        if _is_installed("azure.identity"):
            return self._from_package()
        if os.environ.get("AZURE_FEDERATED_TOKEN_FILE"):
            return self._from_workload(os.environ["AZURE_FEDERATED_TOKEN_FILE"])
        if os.environ.get("IDENTITY_ENDPOINT") and os.environ.get("IDENTITY_HEADER"):
            return self._from_app_service(os.environ["IDENTITY_ENDPOINT"], os.environ["IDENTITY_HEADER"])
        return self._from_instance()

    def _from_package(self) -> OAuthToken:
        import azure.identity  # type: ignore[import-not-found]

        options = {"managed_identity_client_id": self._client_id} if self._client_id else {}
        with azure.identity.DefaultAzureCredential(**options) as credential:
            token = credential.get_token(f"{self._resource}/.default")
        return OAuthToken(Secret(token.token), float(token.expires_on))

    def _from_workload(self, file: str) -> OAuthToken:
        try:
            assertion = Path(file).read_text().strip()
            tenant = os.environ["AZURE_TENANT_ID"]
            client_id = self._client_id or os.environ["AZURE_CLIENT_ID"]
        except (OSError, KeyError) as error:
            raise AuthenticationFailed(f"the workload identity of Azure is incomplete: {error}") from error
        form = {
            "grant_type": "client_credentials",
            "client_id": client_id,
            "scope": f"{self._resource}/.default",
            "client_assertion_type": JWT_ASSERTION,
            "client_assertion": assertion,
        }
        authority = os.environ.get("AZURE_AUTHORITY_HOST", AZURE_AUTHORITY).rstrip("/")
        url = f"{authority}/{quote(tenant, safe='')}/oauth2/v2.0/token"
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        what = "Microsoft Entra ID"
        return _token(_json(request("POST", url, headers=headers, body=urlencode(form).encode()), what), what)

    def _from_app_service(self, endpoint: str, secret: str) -> OAuthToken:
        query = {"api-version": "2019-08-01", "resource": self._resource}
        return self._get(endpoint, query, {"X-IDENTITY-HEADER": secret}, "the identity endpoint of App Service")

    def _from_instance(self) -> OAuthToken:
        query = {"api-version": "2018-02-01", "resource": self._resource}
        url = f"{self._instance}/metadata/identity/oauth2/token"
        return self._get(url, query, {"Metadata": "true"}, "Azure's metadata service")

    def _get(self, url: str, query: dict[str, str], headers: dict[str, str], what: str) -> OAuthToken:
        identity = {"client_id": self._client_id} if self._client_id else {}
        response = request("GET", f"{url}?{urlencode(query | identity)}", headers=headers, options=OPTIONS)
        return _token(_json(response, what), what)


class GoogleTokens:
    """Tokens for Google Cloud's Managed Service for Apache Kafka.

    By `google-auth` if it is installed (application default credentials); else of the machine's
    service account.
    """

    def __init__(self, *, instance: str = GOOGLE_INSTANCE) -> None:
        self._instance = instance

    def __call__(self) -> OAuthToken:
        """Return a token; blocks."""
        token, email = self._from_package() if _is_installed("google.auth") else self._from_instance()
        return google_token(token, email)

    def _from_package(self) -> tuple[OAuthToken, str]:
        import google.auth  # type: ignore[import-not-found,import-untyped,unused-ignore]
        import google.auth.transport.requests  # type: ignore[import-not-found,import-untyped,unused-ignore]

        credentials, _ = google.auth.default(scopes=[GOOGLE_SCOPE])
        credentials.refresh(google.auth.transport.requests.Request())
        # `expiry` is naive, in UTC.
        expires_at = credentials.expiry.timestamp() if credentials.expiry.tzinfo else _utc(credentials.expiry)
        return OAuthToken(Secret(credentials.token), expires_at), getattr(credentials, "service_account_email", "")

    def _from_instance(self) -> tuple[OAuthToken, str]:
        account = f"{self._instance}/computeMetadata/v1/instance/service-accounts/default"
        headers, what = {"Metadata-Flavor": "Google"}, "Google's metadata service"
        token = _token(_json(request("GET", f"{account}/token", headers=headers, options=OPTIONS), what), what)
        email = request("GET", f"{account}/email", headers=headers, options=OPTIONS)
        if email.status != 200:
            raise ConnectionFailed(f"{what} responded with status {email.status}", stage="sasl")
        return token, email.body.decode(errors="replace").strip()


def _utc(naive: Any) -> float:
    from datetime import UTC

    return float(naive.replace(tzinfo=UTC).timestamp())


def google_token(token: OAuthToken, email: str) -> OAuthToken:
    """Return an access token in the form that Google's brokers accept: the parts of a JWT."""
    claims = {"exp": token.expires_at, "iat": _now(), "iss": "Google", "scope": "kafka", "sub": email}
    header = {"typ": "JWT", "alg": "GOOG_OAUTH2_TOKEN"}
    parts = (json.dumps(header), json.dumps(claims), token.value.reveal())
    return OAuthToken(Secret(".".join(encoded_bytes(part.encode()) for part in parts)), token.expires_at, email)


class AwsMskTokens:
    """Tokens for Amazon MSK by OAUTHBEARER: a presigned address.

    The mechanism AWS_MSK_IAM needs no provider.
    """

    def __init__(self, region: str = "", *, profile: str = "") -> None:
        """`region` and `profile`: empty: of the environment."""
        self._region = region
        self._profile = profile

    def __call__(self) -> OAuthToken:
        """Return a token, which is valid for 15 minutes; blocks."""
        region = self._region or find_region(self._profile)
        if not region:
            raise AuthenticationFailed("AwsMskTokens: the region is unknown: pass it, or set AWS_REGION")
        host, now = f"kafka.{region}.amazonaws.com", _now()
        credentials = find_credentials(self._profile)
        query = signed_query(host, region, credentials, now) | {"User-Agent": f"aiokwire/{__version__}"}
        url = f"https://{host}/?{urlencode(query, quote_via=quote)}"
        return OAuthToken(Secret(encoded_bytes(url.encode())), min(now + VALID_SECONDS, credentials.expires_at))
