"""A small OpenID provider on loopback: token endpoint, key set, faults."""

from __future__ import annotations

import base64
import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from aiokwire.clock import wall_ms
from aiokwire.security.jwt import encoded_bytes

RSA_KEYS = [rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2)]
EC_KEY = ec.generate_private_key(ec.SECP256R1())
EC384_KEY = ec.generate_private_key(ec.SECP384R1())
SHA = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}


class Answer(NamedTuple):
    """A response that replaces the usual one."""

    status: int
    body: bytes
    headers: Mapping[str, str] = MappingProxyType({})


def number(value: int) -> str:
    return encoded_bytes(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def rsa_jwk(key: rsa.RSAPrivateKey, kid: str, **more: Any) -> dict[str, Any]:
    numbers = key.public_key().public_numbers()
    return {"kty": "RSA", "kid": kid, "n": number(numbers.n), "e": number(numbers.e), **more}


def ec_jwk(key: ec.EllipticCurvePrivateKey, kid: str, curve: str) -> dict[str, Any]:
    numbers = key.public_key().public_numbers()
    return {"kty": "EC", "kid": kid, "crv": curve, "x": number(numbers.x), "y": number(numbers.y)}


def pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey, passphrase: str = "") -> str:
    encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if passphrase:
        encryption = serialization.BestAvailableEncryption(passphrase.encode())
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption).decode()


def signature(algorithm: str, key: Any, message: bytes) -> bytes:
    """Sign as an issuer does."""
    hashing = SHA[algorithm[2:]]
    if algorithm.startswith("RS"):
        return key.sign(message, padding.PKCS1v15(), hashing)  # type: ignore[no-any-return]
    if algorithm.startswith("PS"):
        return key.sign(  # type: ignore[no-any-return]
            message, padding.PSS(padding.MGF1(hashing), padding.PSS.DIGEST_LENGTH), hashing
        )
    r, s = decode_dss_signature(key.sign(message, ec.ECDSA(hashing)))
    size = key.curve.key_size // 8
    return r.to_bytes(size, "big") + s.to_bytes(size, "big")


def new_token(
    claims: dict[str, Any], *, algorithm: str = "RS256", key: Any = None, kid: str = "key-0", **header: Any
) -> str:
    """Return a signed token."""
    head = {"alg": algorithm, "kid": kid, **header}
    text = ".".join(encoded_bytes(json.dumps(part).encode()) for part in (head, claims))
    return f"{text}.{encoded_bytes(signature(algorithm, key or RSA_KEYS[0], text.encode()))}"


class IdentityProvider(ThreadingHTTPServer):
    """Issues tokens to the client "app" with the secret "app-secret"."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[tuple[str, dict[str, str], dict[str, str]]] = []  # path, form, headers
        self.answers: list[Answer] = []  # replace the next ones
        self.keys = [rsa_jwk(RSA_KEYS[0], "key-0")]
        self.expires_in: Any = 3600

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def count(self) -> Counter[str]:
        return Counter(path for path, _, _ in self.requests)

    def claims(self, sub: str, **more: Any) -> dict[str, Any]:
        now = wall_ms() // 1000
        return {"iss": self.url, "aud": "kafka", "sub": sub, "iat": now, "exp": now + 3600, **more}

    def answer(self, path: str, form: dict[str, str], headers: dict[str, str]) -> Answer:
        if self.answers:
            return self.answers.pop(0)
        if path == "/jwks":
            return _json(200, {"keys": self.keys})
        subject = self._subject(form, headers)
        if subject is None:
            return _json(401, {"error": "invalid_client", "error_description": "wrong\nsecret"})
        token = new_token(self.claims(subject, scope=form.get("scope", "")))
        return _json(200, {"access_token": token, "expires_in": self.expires_in, "token_type": "Bearer"})

    def _subject(self, form: dict[str, str], headers: dict[str, str]) -> str | None:
        if "assertion" in form:
            part = form["assertion"].split(".")[1]
            return str(json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))["sub"])
        found = base64.b64decode(headers.get("authorization", "").removeprefix("Basic ")).decode()
        return "app" if found == "app:app-secret" else None


def _json(status: int, body: object) -> Answer:
    return Answer(status, json.dumps(body).encode())


class _Handler(BaseHTTPRequestHandler):
    server: IdentityProvider

    def do_GET(self) -> None:
        self._respond({})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self._respond(dict(parse_qsl(body)))

    do_PUT = do_GET

    def _respond(self, form: dict[str, str]) -> None:
        path, headers = urlsplit(self.path).path, {name.lower(): value for name, value in self.headers.items()}
        self.server.requests.append((path, form, headers))
        answer = self.server.answer(path, form, headers)
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, *_: object) -> None:
        """Keep standard error clean."""


@contextmanager
def identity_provider() -> Iterator[IdentityProvider]:
    """Run a provider in a thread."""
    with IdentityProvider() as provider:
        thread = threading.Thread(target=provider.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield provider
        finally:
            provider.shutdown()
            thread.join(10)
