"""JSON web tokens (RFC 7519)."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any, Final

from aiokwire.security.secret import Secret

MAX_TOKEN: Final = 65_536
MAX_SKEW: Final = 60.0  # seconds that the clocks of two hosts may differ


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
