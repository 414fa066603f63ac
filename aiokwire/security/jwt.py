"""JSON web tokens: their parts (RFC 7519), signatures (RFC 7515, 7518) and keys (RFC 7517).

Signatures need the package `cryptography` (extra `oauth`), which is imported at first use.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from aiokwire.errors import AuthenticationFailed, ConfigurationError
from aiokwire.security.secret import Secret

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey

MAX_TOKEN: Final = 65_536
MAX_SKEW: Final = 60.0  # seconds that the clocks of two hosts may differ
MIN_RSA_BITS: Final = 2048
HASH_BITS: Final = {"RS256": 256, "RS384": 384, "RS512": 512, "PS256": 256, "ES256": 256, "ES384": 384}
CURVES: Final = {"ES256": ("P-256", "secp256r1", 32), "ES384": ("P-384", "secp384r1", 48)}


# --- parts ------------------------------------------------------------------------------------------------------------


def unverified_claims(token: Secret) -> dict[str, Any]:
    """Return the claims of a token without a check of its signature, {} if it is not a JWT.

    A client reads when its own token expires; it must not trust anything else of it.
    """
    parts = token.reveal().split(".")
    if len(parts) != 3:
        return {}
    try:
        return decoded_object(parts[1])
    except ValueError:
        return {}


def expiry_of(token: Secret) -> float:
    """Return the claim `exp` of a JWT, math.inf if the token is not a JWT or has none."""
    expires_at = time_of(unverified_claims(token), "exp")
    return math.inf if expires_at is None else expires_at


def time_of(claims: Mapping[str, Any], name: str) -> float | None:
    """Return a claim in seconds since the epoch, None if it is missing or not a time."""
    value = claims.get(name)
    is_time = isinstance(value, int | float) and not isinstance(value, bool) and -1e15 < value < 1e15
    return float(value) if is_time else None  # type: ignore[arg-type]  # a number then


def decoded_object(part: str) -> dict[str, Any]:
    """Return the JSON object of a part of a token.

    Raises: ValueError: it is not base64url, not JSON, or not an object.
    """
    if len(part) > MAX_TOKEN:
        raise ValueError("the part is too long")
    try:
        found = json.loads(decoded_bytes(part))
    except RecursionError:
        raise ValueError("the part is nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError("the part is not a JSON object")
    return found


def decoded_bytes(part: str) -> bytes:
    """Return the bytes of base64url without padding (RFC 7515).

    Raises: ValueError: it is not base64url.
    """
    try:
        data = base64.b64decode(part.encode("ascii") + b"=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise ValueError("not base64url") from error
    if encoded_bytes(data) != part:  # only one text for the same bytes
        raise ValueError("not canonical base64url")
    return data


def encoded_bytes(data: bytes) -> str:
    """Return base64url without padding (RFC 7515)."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


# --- signatures -------------------------------------------------------------------------------------------------------


def require_cryptography(purpose: str) -> None:
    """Raises: ConfigurationError: the package `cryptography` is not installed."""
    try:
        import cryptography  # noqa: F401
    except ImportError as error:
        raise ConfigurationError(f"{purpose} needs the package cryptography: pip install 'aiokwire[oauth]'") from error


def sign(algorithm: str, key: Secret, passphrase: Secret, message: bytes) -> bytes:
    """Return the signature of a message with a private key in PEM: RS256 or ES256.

    Raises: AuthenticationFailed: the key is malformed, its passphrase is wrong, or it does not fit
    the algorithm.
    """
    require_cryptography("the signature of an assertion")
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

    private = _private_key(key, passphrase)
    match private, algorithm:
        case rsa.RSAPrivateKey(), "RS256":
            return private.sign(message, padding.PKCS1v15(), hashes.SHA256())
        case ec.EllipticCurvePrivateKey(), "ES256" if private.curve.name == "secp256r1":
            r, s = decode_dss_signature(private.sign(message, ec.ECDSA(hashes.SHA256())))
            return r.to_bytes(32, "big") + s.to_bytes(32, "big")
    raise AuthenticationFailed(
        f"the private key of the assertion does not fit the algorithm {algorithm!r}: RS256 needs an RSA key, ES256 a "
        "key of the curve P-256"
    )


def _private_key(key: Secret, passphrase: Secret) -> object:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    password = passphrase.to_bytes() or None
    try:
        return load_pem_private_key(key.to_bytes(), password)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise AuthenticationFailed(
            "the private key of the assertion cannot be loaded: it is not PEM, or its passphrase is missing or wrong"
        ) from error


def is_signed_by(algorithm: str, key: PublicKey, message: bytes, signature: bytes) -> bool:
    """Return whether a public key verifies the signature of a message."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    hashing = {256: hashes.SHA256(), 384: hashes.SHA384(), 512: hashes.SHA512()}[HASH_BITS[algorithm]]
    try:
        if isinstance(key, rsa.RSAPublicKey) and algorithm in {"RS256", "RS384", "RS512"}:
            key.verify(signature, message, padding.PKCS1v15(), hashing)
        elif isinstance(key, rsa.RSAPublicKey) and algorithm == "PS256":
            salted = padding.PSS(padding.MGF1(hashing), padding.PSS.DIGEST_LENGTH)
            key.verify(signature, message, salted, hashing)
        elif isinstance(key, ec.EllipticCurvePublicKey) and algorithm in CURVES:
            _, curve, size = CURVES[algorithm]
            if key.curve.name != curve or len(signature) != 2 * size:
                return False
            r, s = int.from_bytes(signature[:size], "big"), int.from_bytes(signature[size:], "big")
            key.verify(encode_dss_signature(r, s), message, ec.ECDSA(hashing))
        else:
            return False
    except InvalidSignature:
        return False
    return True


def public_key(jwk: dict[str, Any]) -> PublicKey | None:
    """Return the public key of a JSON web key, None if it is of another kind or malformed."""
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    if jwk.get("use", "sig") != "sig":
        return None
    try:
        if jwk.get("kty") == "RSA":
            key = rsa.RSAPublicNumbers(_number(jwk["e"]), _number(jwk["n"])).public_key()
            return key if key.key_size >= MIN_RSA_BITS else None
        if jwk.get("kty") == "EC":
            curve = {"P-256": ec.SECP256R1, "P-384": ec.SECP384R1}[jwk["crv"]]()
            return ec.EllipticCurvePublicNumbers(_number(jwk["x"]), _number(jwk["y"]), curve).public_key()
    except (KeyError, ValueError, TypeError, AttributeError):
        return None
    return None


def _number(text: str) -> int:
    return int.from_bytes(decoded_bytes(text), "big")
