"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677), with delegation tokens (KIP-48).

Both sides prove that they know the password or what was derived from it; the password itself is
not sent. Like Kafka, and unlike RFC 5802, both sides use user names and passwords as they are,
without SASLprep (RFC 4013): a broker would not recognize a prepared one.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import math
import re
from collections.abc import Callable
from typing import Final, NamedTuple

from aiokwire.errors import AuthenticationFailed
from aiokwire.security.credentials import Fetched, Shared
from aiokwire.security.sasl import UserPassword
from aiokwire.security.secret import Secret, random_bytes, random_text
from aiokwire.threads import run_in_thread

HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 1_000_000
ITERATIONS_ON_LOOP: Final = 15_000  # about 10 ms; more are computed in a thread
MAX_MESSAGE: Final = 8192
GS2_HEADER: Final = "n,,"  # no channel binding, no other authorization id
MAX_CACHED: Final = 64
_FAKE_SALTS: Final = random_bytes(32)  # of this process: an unknown user has the same salt in each attempt
_NONCE: Final = re.compile(r"[\x21-\x2b\x2d-\x7e]+")  # printable, without commas
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,8}")


class ScramCredential(NamedTuple):
    """What a server stores of a user: enough to verify a password, not to log in with it."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes
    principal: str = ""  # the owner of a delegation token; empty: the user name
    expires_at: float = math.inf  # seconds since the epoch

    def __repr__(self) -> str:
        return f"ScramCredential(iterations={self.iterations})"  # the keys would allow impersonating the server


FindCredential = Callable[[str], ScramCredential | None]


# --- keys -------------------------------------------------------------------------------------------------------------


def scram_credential(
    mechanism: str, password: Secret, iterations: int = MIN_ITERATIONS, salt: bytes = b""
) -> ScramCredential:
    """Derive what a server stores; computes long with many iterations.

    `salt` is random if it is empty.
    """
    salt = salt or random_bytes(24)
    return credential_of(mechanism, salted_password(mechanism, password, salt, iterations), salt, iterations)


def credential_of(mechanism: str, salted: bytes, salt: bytes, iterations: int) -> ScramCredential:
    """Return the credential of a salted password, as AlterUserScramCredentials sends it."""
    client_key = _hmac(mechanism, salted, b"Client Key")
    return ScramCredential(salt, iterations, _hash(mechanism, client_key), _hmac(mechanism, salted, b"Server Key"))


def salted_password(mechanism: str, password: Secret, salt: bytes, iterations: int) -> bytes:
    """Return Hi(password, salt, iterations) of RFC 5802."""
    return hashlib.pbkdf2_hmac(HASHES[mechanism], _encoded(password.reveal()), salt, iterations)


async def derive_salted_password(mechanism: str, password: Secret, salt: bytes, iterations: int) -> bytes:
    """Return the salted password, in a thread if it takes long."""
    if iterations <= ITERATIONS_ON_LOOP:
        return salted_password(mechanism, password, salt, iterations)
    return await run_in_thread(salted_password, mechanism, password, salt, iterations)


async def is_password_of(mechanism: str, credential: ScramCredential | None, password: Secret) -> bool:
    """Return whether a clear password is the one of a credential, for PLAIN.

    Takes the time of a check if the credential is None (an unknown user).
    """
    known = credential or _fake_credential(mechanism, "", MIN_ITERATIONS)
    salted = await derive_salted_password(mechanism, password, known.salt, known.iterations)
    stored_key = credential_of(mechanism, salted, known.salt, known.iterations).stored_key
    return hmac.compare_digest(stored_key, known.stored_key) and credential is not None


class SaltedPasswords:
    """The salted passwords that a client has derived: later logins need no iterations.

    Connections that are opened together derive it once. Used by several event loops.
    """

    def __init__(self) -> None:
        self._salted: dict[tuple[str, Secret, bytes, int], Shared[bytes]] = {}

    async def get(self, mechanism: str, password: Secret, salt: bytes, iterations: int) -> bytes:
        """Return a salted password; derive it if it is not cached."""
        key = (mechanism, password, salt, iterations)
        shared = self._salted.get(key)
        if shared is None:
            if len(self._salted) >= MAX_CACHED:
                self._salted = {}
            shared = self._salted[key] = _derived(*key)
        return await shared.get()

    def __repr__(self) -> str:
        return f"<SaltedPasswords {len(self._salted)} cached>"


def _derived(mechanism: str, password: Secret, salt: bytes, iterations: int) -> Shared[bytes]:
    async def derive() -> Fetched[bytes]:
        return Fetched(await derive_salted_password(mechanism, password, salt, iterations), math.inf, math.inf)

    return Shared(derive, what="the salted password")


# --- the client -------------------------------------------------------------------------------------------------------


class ScramClient:
    """The client's side of one exchange.

    `is_token`: the credentials are the id and the HMAC of a delegation token. `cache` is shared by
    the connections of a client. `nonce` is for tests.
    """

    def __init__(
        self,
        mechanism: str,
        credentials: UserPassword,
        *,
        is_token: bool = False,
        cache: SaltedPasswords | None = None,
        nonce: str = "",
    ) -> None:
        self.mechanism: Final = mechanism
        self._credentials = credentials
        self._extensions = ",tokenauth=true" if is_token else ""
        self._cache = cache or SaltedPasswords()
        self._nonce = nonce or random_text(24)
        self._first_bare = ""
        self._server_signature = b""  # as the server must send it
        self._is_complete = False

    @property
    def is_complete(self) -> bool:
        """Whether the server has proved that it knows the password."""
        return self._is_complete

    async def evaluate_challenge(self, challenge: bytes) -> bytes:
        """Return the next message: the first one, the proof, then b"".

        Raises: AuthenticationFailed: the server's message is malformed or weak, or it does not know
        the password.
        """
        if self._is_complete:
            raise AuthenticationFailed(f"{self.mechanism}: the broker sent a message after the end of the exchange")
        if not self._first_bare:
            return self._first()
        text = _decoded(challenge)
        if not self._server_signature:
            return await self._final(text)
        self._verify(text)
        return b""

    def _first(self) -> bytes:
        user = self._credentials.username.replace("=", "=3D").replace(",", "=2C")
        if not user or not self._credentials.password:
            raise AuthenticationFailed(
                f"{self.mechanism} needs a user name and a password: set sasl_plain_username and sasl_plain_password"
            )
        self._first_bare = f"n={user},r={self._nonce}{self._extensions}"
        return _encoded(GS2_HEADER + self._first_bare)

    async def _final(self, server_first: str) -> bytes:
        nonce, salt, iterations = _parse_server_first(server_first)
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise AuthenticationFailed(
                f"{self.mechanism}: the broker's nonce does not extend the client's: another party may have responded"
            )
        if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
            raise AuthenticationFailed(
                f"{self.mechanism}: the broker requires {iterations} iterations; allowed are {MIN_ITERATIONS} to "
                f"{MAX_ITERATIONS}: store the user's credentials again with a count in this range"
            )
        salted = await self._cache.get(self.mechanism, self._credentials.password, salt, iterations)
        without_proof = f"c={_encode64(GS2_HEADER.encode())},r={nonce}"
        message = _encoded(f"{self._first_bare},{server_first},{without_proof}")
        self._server_signature = _hmac(self.mechanism, _hmac(self.mechanism, salted, b"Server Key"), message)
        client_key = _hmac(self.mechanism, salted, b"Client Key")
        proof = _xor(client_key, _hmac(self.mechanism, _hash(self.mechanism, client_key), message))
        return f"{without_proof},p={_encode64(proof)}".encode()

    def _verify(self, server_final: str) -> None:
        attribute = server_final.split(",", 1)[0]
        if attribute.startswith("e="):
            raise AuthenticationFailed(f"{self.mechanism}: the broker rejected the login: {attribute[2:]}")
        expected = f"v={_encode64(self._server_signature)}"
        if not hmac.compare_digest(attribute.encode(), expected.encode()):
            raise AuthenticationFailed(
                f"{self.mechanism}: the broker did not prove that it knows the password: another party may have "
                "responded; check the address, and use SASL_SSL"
            )
        self._is_complete = True


def _parse_server_first(text: str) -> tuple[str, bytes, int]:
    """Return nonce, salt and iterations."""
    parts = text.split(",")
    if len(parts) < 3 or [part[:2] for part in parts[:3]] != ["r=", "s=", "i="]:
        raise AuthenticationFailed("the broker's first SCRAM message is malformed")
    nonce, number = parts[0][2:], parts[2][2:]
    if not _NONCE.fullmatch(nonce) or not _NUMBER.fullmatch(number):
        raise AuthenticationFailed("the nonce or the iterations of the broker's first SCRAM message are malformed")
    return nonce, _decode64(parts[1][2:], "salt"), int(number)


# --- the server -------------------------------------------------------------------------------------------------------


class ScramServer:
    """The server's side of one exchange.

    `find` returns the credential of a user, `find_token` the one of a delegation token with its
    owner as `principal`. The exchange of an unknown user takes the same course and time as one
    with a wrong password. `nonce` is for tests.
    """

    def __init__(
        self,
        mechanism: str,
        find: FindCredential,
        *,
        find_token: FindCredential | None = None,
        iterations: int = MIN_ITERATIONS,
        nonce: str = "",
    ) -> None:
        self.mechanism: Final = mechanism
        self._find = find
        self._find_token = find_token
        self._iterations = iterations  # of unknown users: what most users have
        self._nonce = nonce or random_text(24)
        self._exchange: _Exchange | None = None
        self._credential: ScramCredential | None = None
        self._is_answered = False
        self._is_complete = False

    @property
    def is_complete(self) -> bool:
        return self._is_complete

    @property
    def authorization_id(self) -> str:
        """The user, or the owner of the delegation token."""
        if self._exchange is None or self._credential is None:
            return ""
        return self._credential.principal or self._exchange.user

    @property
    def is_token(self) -> bool:
        """Whether the client uses a delegation token."""
        return self._exchange is not None and self._exchange.is_token

    @property
    def expires_at(self) -> float:
        return math.inf if self._credential is None else self._credential.expires_at

    async def evaluate_response(self, response: bytes) -> bytes:
        """Return the server's first message, then its signature.

        Raises: AuthenticationFailed: the message is malformed, or the credentials are wrong.
        """
        text = _decoded(response)
        if self._exchange is None:
            return self._first(text)
        if self._is_answered:  # also after a failure: a nonce is for one attempt
            raise AuthenticationFailed(f"a message after the end of the {self.mechanism} exchange")
        return self._final(text, self._exchange)

    def _first(self, client_first: str) -> bytes:
        user, nonce, is_token, authorization_id = _parse_client_first(client_first)
        if authorization_id not in {"", user}:
            raise AuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        find = self._find_token if is_token else self._find
        self._credential = find(user) if find is not None else None
        shown = self._credential or _fake_credential(self.mechanism, user, self._iterations)
        server_first = f"r={nonce}{self._nonce},s={_encode64(shown.salt)},i={shown.iterations}"
        header, bare = _split_header(client_first)
        self._exchange = _Exchange(user, is_token, nonce + self._nonce, header, f"{bare},{server_first}", shown)
        return server_first.encode()

    def _final(self, client_final: str, exchange: _Exchange) -> bytes:
        self._is_answered = True
        shown = exchange.credential
        without_proof, mark, encoded = client_final.rpartition(",p=")
        attributes = without_proof.split(",")
        is_right = mark and attributes[:2] == [f"c={_encode64(exchange.header.encode())}", f"r={exchange.nonce}"]
        proof = _decode64(encoded, "proof")
        message = _encoded(f"{exchange.messages},{without_proof}")
        signature = _hmac(self.mechanism, shown.stored_key, message)
        if len(proof) != len(signature):
            raise AuthenticationFailed(_refused(self.mechanism))
        stored_key = _hash(self.mechanism, _xor(proof, signature))
        is_proved = hmac.compare_digest(stored_key, shown.stored_key)
        if not is_right or not is_proved or self._credential is None:
            raise AuthenticationFailed(_refused(self.mechanism))
        self._is_complete = True
        return f"v={_encode64(_hmac(self.mechanism, shown.server_key, message))}".encode()


class _Exchange(NamedTuple):
    """What the server keeps between the two messages of a client."""

    user: str
    is_token: bool
    nonce: str
    header: str
    messages: str  # the beginning of RFC 5802's AuthMessage
    credential: ScramCredential  # a fake one for an unknown user


def _refused(mechanism: str) -> str:
    """Kafka's text, for every reason the same."""
    return f"Authentication failed during authentication due to invalid credentials with SASL mechanism {mechanism}"


def _split_header(client_first: str) -> tuple[str, str]:
    """Return the GS2 header and the rest."""
    flag, authorization_id, bare = client_first.split(",", 2)
    return f"{flag},{authorization_id},", bare


def _parse_client_first(text: str) -> tuple[str, str, bool, str]:
    """Return user, nonce, whether it is a delegation token, and the authorization id."""
    parts = text.split(",")
    if len(parts) < 4 or parts[0] not in {"n", "y"} or parts[1][:2] not in {"", "a="}:
        raise AuthenticationFailed("the client's first SCRAM message is malformed, or requires channel binding")
    if not parts[2].startswith("n=") or not parts[3].startswith("r=") or not _NONCE.fullmatch(parts[3][2:]):
        raise AuthenticationFailed("the client's first SCRAM message lacks a user name or a nonce")
    is_token = any(part.lower() == "tokenauth=true" for part in parts[4:])
    return _user_name(parts[2][2:]), parts[3][2:], is_token, _user_name(parts[1][2:])


def _user_name(encoded: str) -> str:
    if "=" in encoded.replace("=2C", "").replace("=3D", ""):
        raise AuthenticationFailed("the user name of the SCRAM message has an unknown escape")
    return encoded.replace("=2C", ",").replace("=3D", "=")


def _fake_credential(mechanism: str, user: str, iterations: int) -> ScramCredential:
    """Return the credential of an unknown user: stable, random, without a password."""
    salt = hmac.digest(_FAKE_SALTS, _encoded(user), "sha256")[:24]
    size = hashlib.new(HASHES[mechanism]).digest_size
    return ScramCredential(salt, iterations, bytes(size), bytes(size))


# --- bytes ------------------------------------------------------------------------------------------------------------


def _hmac(mechanism: str, key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, HASHES[mechanism])


def _hash(mechanism: str, message: bytes) -> bytes:
    return hashlib.new(HASHES[mechanism], message).digest()


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


def _encode64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _decode64(text: str, what: str) -> bytes:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if not data or _encode64(data) != text:  # only one text for the same bytes
        raise AuthenticationFailed(f"the {what} of the SCRAM message is not base64")
    return data


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:  # its text would contain the password
        raise AuthenticationFailed("the user name or the password has characters that UTF-8 cannot encode") from None


def _decoded(message: bytes) -> str:
    if len(message) > MAX_MESSAGE:
        raise AuthenticationFailed(f"a SCRAM message has {len(message)} bytes, more than {MAX_MESSAGE}")
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise AuthenticationFailed("a SCRAM message is not UTF-8") from None
