"""Small HTTP requests to token endpoints, key sets and cloud metadata, with every bound set.

Blocking: call it in a thread. It uses the standard library: a client library would be a
dependency for a few requests an hour. Redirects are not followed, proxies not used; the system's
certificate authorities are trusted (`SSL_CERT_FILE` names others).
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import ssl
from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

from aiokwire.clock import wall_ms
from aiokwire.errors import AuthenticationFailed, ConfigurationError, ConnectionFailed

MAX_BODY: Final = 1_048_576
CHUNK: Final = 65_536


class HttpOptions(NamedTuple):
    """Limits of a request, in seconds and bytes."""

    connect_timeout: float = 10.0
    read_timeout: float = 10.0
    max_body: int = MAX_BODY
    plain_hosts: Collection[str] = ()  # hosts that may be reached without TLS, besides loopback


class HttpResponse(NamedTuple):
    """A response; `headers` have lower-case names."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def __repr__(self) -> str:
        return f"<HttpResponse {self.status}, {len(self.body)} bytes>"  # the body may contain a token

    def json(self) -> dict[str, Any]:
        """Return the body as a JSON object.

        Raises: ValueError: it is something else.
        """
        try:
            found = json.loads(self.body)
        except RecursionError:
            raise ValueError("the JSON is nested too deeply") from None
        if not isinstance(found, dict):
            raise ValueError("the body is not a JSON object")
        return found


DEFAULT_OPTIONS: Final = HttpOptions()


def shown(url: str) -> str:
    """Return an address without its query, which may contain secrets."""
    return url.split("?", 1)[0].split("#", 1)[0]


def check_url(url: str, plain_hosts: Collection[str] = ()) -> SplitResult:
    """Return the parts of an address.

    Raises: ConfigurationError: it is not https (http to loopback is allowed), or it is malformed.
    """
    try:
        parts = urlsplit(url)
        has_port = parts.port is None or parts.port > 0
    except ValueError as error:
        raise ConfigurationError(f"{shown(url)!r} is not an address: {error}") from error
    host = parts.hostname or ""
    if parts.scheme not in {"http", "https"} or not host or not has_port or parts.username is not None:
        raise ConfigurationError(f"{shown(url)!r} is not an address like https://host/path, without a user name")
    if parts.scheme == "http" and not is_loopback(host) and host not in plain_hosts:
        raise ConfigurationError(
            f"{shown(url)!r}: tokens and secrets are sent over https only; http is allowed for loopback"
        )
    return parts


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is this host's loopback."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def request(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    options: HttpOptions = DEFAULT_OPTIONS,
) -> HttpResponse:
    """Send a request and return the response, whatever its status.

    Raises:
        AuthenticationFailed: the server's certificate is not trusted.
        ConfigurationError: the address is not allowed.
        ConnectionFailed: the server cannot be reached, is too slow, or does not speak HTTP.
    """
    parts = check_url(url, options.plain_hosts)
    for name, value in (headers or {}).items():
        if not value.isascii() or not value.isprintable():  # http.client's error would contain the value
            raise AuthenticationFailed(f"{shown(url)}: the value of the header {name} has characters that HTTP forbids")
    connection = _connection(parts, options.connect_timeout)
    try:
        connection.connect()
        connection.sock.settimeout(options.read_timeout)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request(method, target, body=body, headers=dict(headers or {}))
        with connection.getresponse() as response:
            return _read(response, url, options)
    except ssl.SSLCertVerificationError as error:
        raise AuthenticationFailed(
            f"the certificate of {shown(url)} is not trusted: {error.verify_message}: set SSL_CERT_FILE to the file of "
            "its authority"
        ) from error
    except TimeoutError as error:
        raise ConnectionFailed(f"{shown(url)}: no response in time", stage="sasl") from error
    except OSError as error:
        raise ConnectionFailed(f"{shown(url)}: {type(error).__name__}: {error}", stage="sasl") from error
    except (http.client.HTTPException, ValueError) as error:  # whose texts may contain the address or a header
        raise ConnectionFailed(f"{shown(url)}: {type(error).__name__}", stage="sasl") from None
    finally:
        connection.close()


def _connection(parts: SplitResult, timeout: float) -> http.client.HTTPConnection:
    host = parts.hostname or ""
    if parts.scheme == "http":
        return http.client.HTTPConnection(host, parts.port, timeout=timeout)
    return http.client.HTTPSConnection(host, parts.port, timeout=timeout, context=ssl.create_default_context())


def _read(response: http.client.HTTPResponse, url: str, options: HttpOptions) -> HttpResponse:
    end = wall_ms() + options.read_timeout * 1000  # the socket's timeout is for each part
    body = b""
    while chunk := response.read1(CHUNK):
        body += chunk
        if len(body) > options.max_body:
            raise ConnectionFailed(f"{shown(url)}: the response exceeds {options.max_body} bytes", stage="sasl")
        if wall_ms() > end:
            raise TimeoutError
    if 300 <= response.status < 400:
        raise ConnectionFailed(
            f"{shown(url)}: status {response.status}: redirects are not followed; set the final address", stage="sasl"
        )
    return HttpResponse(response.status, {name.lower(): value for name, value in response.getheaders()}, body)
