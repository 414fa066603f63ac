"""Requests tokens from an OpenID provider: client credentials (KIP-768), JWT bearer (KIP-1139)."""

from __future__ import annotations

import base64
import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote_plus, urlencode

import anyio

from aiokwire.backoff import Backoff
from aiokwire.clock import loop_time, wall_ms
from aiokwire.errors import AuthenticationFailed, ConfigurationError, ConnectionFailed
from aiokwire.log_fields import FieldLogger, get_logger
from aiokwire.security.config import SecurityConfig
from aiokwire.security.http import HttpOptions, HttpResponse, check_url, request, shown
from aiokwire.security.jwt import MAX_TOKEN, encoded_bytes, expiry_of, sign
from aiokwire.security.sasl import OAuthToken
from aiokwire.security.secret import Secret, random_text
from aiokwire.threads import run_in_thread

MAX_FILE: Final = 1_048_576


class AssertionSource:
    """Supplies an assertion for each request, by the options `sasl_oauthbearer_assertion_*`."""

    def __init__(self, config: SecurityConfig) -> None:
        self._file = config.sasl_oauthbearer_assertion_file
        self._key_file = config.sasl_oauthbearer_assertion_private_key_file or ""
        self._passphrase = Secret(config.sasl_oauthbearer_assertion_private_key_passphrase or "")
        self._template_file = config.sasl_oauthbearer_assertion_template_file
        self._algorithm = config.sasl_oauthbearer_assertion_algorithm
        self._claims = {
            "iss": config.sasl_oauthbearer_assertion_claim_iss,
            "sub": config.sasl_oauthbearer_assertion_claim_sub,
            "aud": config.sasl_oauthbearer_assertion_claim_aud,
        }
        self._valid_seconds = config.sasl_oauthbearer_assertion_claim_exp_seconds
        self._early_seconds = config.sasl_oauthbearer_assertion_claim_nbf_seconds
        self._has_jti = config.sasl_oauthbearer_assertion_claim_jti_include
        if not self._file and not self._key_file:
            raise ConfigurationError(
                "sasl_oauthbearer_grant='jwt-bearer' needs sasl_oauthbearer_assertion_file or "
                "sasl_oauthbearer_assertion_private_key_file"
            )

    def assertion(self) -> Secret:
        """Return the file's assertion, or a new one that is signed with the key.

        Raises: AuthenticationFailed: a file cannot be read, or the key cannot be used.
        """
        if self._file:
            text = read_text(self._file, "sasl_oauthbearer_assertion_file").strip()
            if len(text) > MAX_TOKEN or text.count(".") != 2:
                raise AuthenticationFailed(f"sasl_oauthbearer_assertion_file {self._file!r} does not contain a JWT")
            return Secret(text)
        key = Secret(read_text(self._key_file, "sasl_oauthbearer_assertion_private_key_file"))
        header, claims = self._template()
        signing_input = ".".join(
            encoded_bytes(json.dumps(part).encode())
            for part in ({**header, "alg": self._algorithm, "typ": "JWT"}, {**claims, **self._own_claims()})
        )
        signature = sign(self._algorithm, key, self._passphrase, signing_input.encode())
        return Secret(f"{signing_input}.{encoded_bytes(signature)}")

    def _own_claims(self) -> dict[str, Any]:
        now = wall_ms() // 1000
        times = {"iat": now, "nbf": int(now - self._early_seconds), "exp": int(now + self._valid_seconds)}
        identity = {"jti": random_text(16)} if self._has_jti else {}
        return {name: value for name, value in self._claims.items() if value} | times | identity

    def _template(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return header and claims of the template: {"header": {...}, "payload": {...}}."""
        if not self._template_file:
            return {}, {}
        text = read_text(self._template_file, "sasl_oauthbearer_assertion_template_file")
        try:
            found = json.loads(text)
            return dict(found.get("header") or {}), dict(found.get("payload") or {})
        except (ValueError, AttributeError, TypeError, RecursionError) as error:
            raise AuthenticationFailed(
                f"sasl_oauthbearer_assertion_template_file {self._template_file!r} is not a JSON object with header "
                "and payload"
            ) from error


def read_text(path: str, option: str) -> str:
    """Return the text of a file, at most 1 MiB.

    Raises: AuthenticationFailed: names the option and why the file cannot be read.
    """
    try:
        file = Path(path)
        if file.stat().st_size > MAX_FILE:
            raise AuthenticationFailed(f"{option} {path!r} exceeds {MAX_FILE} bytes")
        return file.read_text()
    except OSError as error:
        raise AuthenticationFailed(f"{option} {path!r} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise AuthenticationFailed(f"{option} {path!r} is not text") from error


JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
RETRIED: Final = frozenset({408, 425, 429})  # with all of 5xx
SHORTEST_REQUEST: Final = 0.1  # seconds, even near the caller's deadline

logger: FieldLogger = get_logger(__name__)

NewForm = Callable[[], tuple[dict[str, str], dict[str, str]]]


class TokenEndpoint:
    """Requests tokens, by the options `sasl_oauthbearer_*` and `sasl_login_*`."""

    def __init__(self, config: SecurityConfig, *, rng: random.Random | None = None) -> None:
        """Raises: ConfigurationError: an option is missing, or the address is not https."""
        self._url = config.sasl_oauthbearer_token_endpoint_url or ""
        check_url(self._url)
        self._form = _form_of(config)
        self._options = HttpOptions(
            config.sasl_login_connect_timeout_ms / 1000, config.sasl_login_read_timeout_ms / 1000
        )
        self._retry_initial = config.sasl_login_retry_backoff_ms / 1000
        self._retry_max = config.sasl_login_retry_backoff_max_ms / 1000
        self._rng = rng or random.Random()
        self._has_warned = False  # since the last token: one log line per incident

    async def token(self) -> OAuthToken:
        """Request a token; retry transient errors, in total for `sasl_login_retry_backoff_max_ms`.

        It ends before the caller's deadline, whose error would not name the cause.

        Raises:
            AuthenticationFailed: the provider rejects the client.
            ConnectionFailed: the provider cannot be reached, or fails.
        """
        backoff = Backoff(self._retry_initial, self._retry_max, rng=self._rng)
        started = loop_time()
        end = min(started + self._retry_max, anyio.current_effective_deadline())
        while True:
            try:
                token = await run_in_thread(self._request, self._limited(anyio.current_effective_deadline()))
            except ConnectionFailed as error:
                delay, now = backoff.next(), loop_time()
                if now + delay >= end:
                    reason = f"no OAuth token after {backoff.attempts} attempts in {now - started:.1f} s: {error}"
                    raise ConnectionFailed(reason, stage="sasl", is_logged=self._has_warned) from error
                self._warn(error, end - now)
            else:
                self._has_warned = False
                return token
            await anyio.sleep(delay)

    def _limited(self, deadline: float) -> HttpOptions:
        """Return the limits of a request that the caller waits for until `deadline`."""
        left = max(deadline - loop_time(), SHORTEST_REQUEST)
        options = self._options
        return options._replace(
            connect_timeout=min(options.connect_timeout, left), read_timeout=min(options.read_timeout, left)
        )

    def _warn(self, error: ConnectionFailed, left: float) -> None:
        if not self._has_warned:
            self._has_warned = True
            logger.warning("no OAuth token yet, retrying for up to %.1f s: %s", left, error)

    def _request(self, options: HttpOptions) -> OAuthToken:
        """Send one request; blocks."""
        form, headers = self._form()
        headers |= {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        response = request("POST", self._url, headers=headers, body=urlencode(form).encode(), options=options)
        if response.status != 200:
            raise _failure(self._url, response)
        return token_of(response, self._url)


def _form_of(config: SecurityConfig) -> NewForm:
    """Return the function that builds a request's form and headers."""
    scope = {"scope": config.sasl_oauthbearer_scope} if config.sasl_oauthbearer_scope else {}
    if config.sasl_oauthbearer_grant == "jwt-bearer":
        source = AssertionSource(config)
        return lambda: ({"grant_type": JWT_BEARER, "assertion": source.assertion().reveal()} | scope, {})
    client_id = config.sasl_oauthbearer_client_credentials_client_id
    secret = Secret(config.sasl_oauthbearer_client_credentials_client_secret or "")
    if not client_id or not secret:
        raise ConfigurationError(
            "sasl_oauthbearer_token_endpoint_url needs sasl_oauthbearer_client_credentials_client_id and "
            "sasl_oauthbearer_client_credentials_client_secret, or sasl_oauthbearer_grant='jwt-bearer'"
        )

    def form() -> tuple[dict[str, str], dict[str, str]]:
        user, password = client_id.encode(), secret.to_bytes()
        if config.sasl_oauthbearer_header_urlencode:
            user, password = quote_plus(user).encode(), quote_plus(password).encode()
        basic = base64.b64encode(user + b":" + password).decode()
        return {"grant_type": "client_credentials"} | scope, {"Authorization": f"Basic {basic}"}

    return form


def token_of(response: HttpResponse, url: str) -> OAuthToken:
    """Return the token of a response (RFC 6749, section 5.1).

    Raises: ConnectionFailed: the response is not what the RFC defines.
    """
    try:
        found = response.json()
        value = found["access_token"]
    except (ValueError, KeyError) as error:
        raise ConnectionFailed(
            f"{shown(url)}: the response is not JSON with an access_token: is this the token endpoint?", stage="sasl"
        ) from error
    if not isinstance(value, str) or not value or len(value) > MAX_TOKEN:
        raise ConnectionFailed(
            f"{shown(url)}: the access_token is not a text of at most {MAX_TOKEN} bytes", stage="sasl"
        )
    token = Secret(value)
    return OAuthToken(token, min(expiry_of(token), wall_ms() / 1000 + _seconds(found.get("expires_in"))))


def _seconds(expires_in: object) -> float:
    """Return the lifetime; some providers send it as text."""
    try:
        return float(expires_in)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return math.inf


def _failure(url: str, response: HttpResponse) -> AuthenticationFailed | ConnectionFailed:
    reason = f"{shown(url)} responded with status {response.status}{_described(response)}"
    if response.status >= 500 or response.status in RETRIED:
        return ConnectionFailed(reason, stage="sasl")
    advice = {
        400: "check the grant, the scope and the client's permissions at the provider",
        401: "check the client id and the client secret, or the assertion's key and claims",
        403: "the provider does not allow this client to request tokens",
        404: "check the path of sasl_oauthbearer_token_endpoint_url",
    }.get(response.status, "check sasl_oauthbearer_token_endpoint_url")
    return AuthenticationFailed(f"{reason}: {advice}")


def _described(response: HttpResponse) -> str:
    """Return error and error_description (RFC 6749, section 5.2)."""
    try:
        found = response.json()
    except ValueError:
        return ""
    texts = [str(found[name])[:200] for name in ("error", "error_description") if found.get(name)]
    return f" ({': '.join(texts)})" if texts else ""
