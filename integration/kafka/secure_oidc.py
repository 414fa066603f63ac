"""An OpenID provider on loopback, which issues signed tokens to the clients of secure brokers.

GET /jwks, GET /.well-known/openid-configuration, POST /token with the grants client_credentials and
jwt-bearer (RFC 7523). `fail_next` makes the next requests for tokens fail; `rotate` adds a key.
"""

from __future__ import annotations

import base64
import json
import threading
import time
import urllib.parse
import uuid
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"


class OidcProvider:
    """The provider in a thread; `clients` are the secrets of client ids."""

    def __init__(self, clients: dict[str, str]) -> None:
        self._clients = clients
        self._keys: list[rsa.RSAPrivateKey] = []
        self._failures: deque[int] = deque()
        self._thread: threading.Thread | None = None
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), lambda *rest: _Handler(self, *rest))
        self._server.daemon_threads = True
        self.rotate()

    @property
    def issuer(self) -> str:
        """The address of the provider."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def token_url(self) -> str:
        """The address of the token endpoint."""
        return f"{self.issuer}/token"

    @property
    def jwks_url(self) -> str:
        """The address of the public keys."""
        return f"{self.issuer}/jwks"

    def start(self) -> None:
        """Serve in a thread."""
        self._thread = threading.Thread(target=self._server.serve_forever, name="oidc", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        if self._thread is not None:  # otherwise `shutdown` waits without an end
            self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def rotate(self) -> None:
        """Sign tokens with a new key from now on; the public keys include the earlier ones."""
        self._keys.append(rsa.generate_private_key(public_exponent=65537, key_size=2048))

    def fail_next(self, status: int, times: int = 1) -> None:
        """Let the next requests for tokens fail with an HTTP status."""
        self._failures.extend([status] * times)

    def token(self, subject: str, *, lifetime: float = 3600.0, audience: str = "kafka", scope: str = "") -> str:
        """Return a signed token."""
        now = int(time.time())  # noqa: TID251 - the broker compares it with its wall clock
        claims = {
            "iss": self.issuer,
            "aud": audience,
            "sub": subject,
            "scope": scope,
            "iat": now,
            "exp": now + int(lifetime),
            "jti": uuid.uuid4().hex,
        }
        head = {"alg": "RS256", "typ": "JWT", "kid": f"key-{len(self._keys)}"}
        text = f"{_base64(json.dumps(head).encode())}.{_base64(json.dumps(claims).encode())}"
        return f"{text}.{_base64(self._keys[-1].sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))}"

    def get(self, path: str) -> tuple[int, dict[str, Any]]:
        """Return status and body of a GET request."""
        if path == "/jwks":
            return 200, {"keys": [_public(number, key) for number, key in enumerate(self._keys, 1)]}
        if path == "/.well-known/openid-configuration":
            return 200, {"issuer": self.issuer, "jwks_uri": self.jwks_url, "token_endpoint": self.token_url}
        return 404, {"error": "not_found"}

    def post(self, path: str, form: dict[str, str], client: str, secret: str) -> tuple[int, dict[str, Any]]:
        """Return status and body of a POST request."""
        if path != "/token":
            return 404, {"error": "not_found"}
        if self._failures:
            return self._failures.popleft(), {"error": "temporarily_unavailable"}
        if form.get("grant_type") == JWT_BEARER:
            client = _subject(form["assertion"])
        elif form.get("grant_type") != "client_credentials":
            return 400, {"error": "unsupported_grant_type"}
        elif self._clients.get(client) != secret:
            return 401, {"error": "invalid_client", "error_description": "the client id or the secret is wrong"}
        scope = form.get("scope", "")
        token = self.token(client, scope=scope)
        return 200, {"access_token": token, "token_type": "Bearer", "expires_in": 3600, "scope": scope}


class _Handler(BaseHTTPRequestHandler):
    """The requests of one connection."""

    def __init__(self, provider: OidcProvider, *rest: Any) -> None:
        self._provider = provider
        super().__init__(*rest)

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def do_GET(self) -> None:
        self._respond(*self._provider.get(urllib.parse.urlparse(self.path).path))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        form = dict(urllib.parse.parse_qsl(body))
        client, secret = self._credentials(form)
        self._respond(*self._provider.post(urllib.parse.urlparse(self.path).path, form, client, secret))

    def _credentials(self, form: dict[str, str]) -> tuple[str, str]:
        scheme, _, value = (self.headers.get("Authorization") or "").partition(" ")
        if scheme != "Basic":
            return form.get("client_id", ""), form.get("client_secret", "")
        client, _, secret = base64.b64decode(value).decode().partition(":")
        return urllib.parse.unquote(client), urllib.parse.unquote(secret)

    def _respond(self, status: int, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _public(number: int, key: rsa.RSAPrivateKey) -> dict[str, str]:
    """Return a public key as a JSON web key (RFC 7517)."""
    modulus = key.public_key().public_numbers().n.to_bytes(256, "big")
    return {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": f"key-{number}", "n": _base64(modulus), "e": "AQAB"}


def _subject(assertion: str) -> str:
    payload = assertion.split(".")[1]
    return str(json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["sub"])
