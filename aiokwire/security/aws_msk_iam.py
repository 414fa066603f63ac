"""AWS_MSK_IAM: the login of Amazon MSK, a presigned request (Signature Version 4) as JSON.

Compared with botocore's signatures; not tried against the real service.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

from aiokwire._version import __version__
from aiokwire.clock import wall_ms
from aiokwire.errors import AuthenticationFailed
from aiokwire.security.aws_credentials import AwsCredentials

MECHANISM: Final = "AWS_MSK_IAM"
PAYLOAD_VERSION: Final = "2020_10_22"
SERVICE: Final = "kafka-cluster"
ACTION: Final = "kafka-cluster:Connect"
ALGORITHM: Final = "AWS4-HMAC-SHA256"
VALID_SECONDS: Final = 900
MAX_CHALLENGE: Final = 65_536
_REGION: Final = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?$")
_NO_BODY: Final = hashlib.sha256(b"").hexdigest()


def region_of(host: str) -> str:
    """Return the region in the name of an MSK broker, empty if the name has another form."""
    found = _REGION.search(host.rstrip(".").lower())
    return found[1] if found is not None else ""


class AwsMskIamClient:
    """The client's side of AWS_MSK_IAM: one signed message, and the broker's confirmation."""

    mechanism: Final = MECHANISM

    def __init__(self, host: str, region: str, credentials: AwsCredentials) -> None:
        self._host = host
        self._region = region
        self._credentials = credentials
        self._is_sent = False
        self._is_complete = False

    @property
    def is_complete(self) -> bool:
        """Whether the broker accepted the signature."""
        return self._is_complete

    async def evaluate_challenge(self, challenge: bytes) -> bytes:
        """Return the signed message, then b"".

        Raises: AuthenticationFailed: the broker's confirmation is malformed.
        """
        if self._is_complete:
            raise AuthenticationFailed("the broker sent a message after the end of the AWS_MSK_IAM exchange")
        if not self._is_sent:
            self._is_sent = True
            return json.dumps(signed_payload(self._host, self._region, self._credentials, wall_ms() // 1000)).encode()
        _check_confirmation(challenge)
        self._is_complete = True
        return b""


def _check_confirmation(challenge: bytes) -> None:
    try:
        version = json.loads(challenge[:MAX_CHALLENGE])["version"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise AuthenticationFailed("the broker's AWS_MSK_IAM confirmation is not JSON with a version") from None
    if version != PAYLOAD_VERSION:
        raise AuthenticationFailed(f"the broker's AWS_MSK_IAM confirmation has the unknown version {version!r}")


def signed_payload(host: str, region: str, credentials: AwsCredentials, now: float) -> dict[str, str]:
    """Return the message for a broker; `now` in seconds since the epoch."""
    query = signed_query(host, region, credentials, now)
    return {
        "version": PAYLOAD_VERSION,
        "host": host,
        "user-agent": f"aiokwire/{__version__}",
        **{name.lower(): value for name, value in query.items()},
    }


def signed_query(host: str, region: str, credentials: AwsCredentials, now: float) -> dict[str, str]:
    """Return the parameters of the presigned request `GET https://host/`."""
    time = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")
    scope = f"{time[:8]}/{region}/{SERVICE}/aws4_request"
    query = {
        "Action": ACTION,
        "X-Amz-Algorithm": ALGORITHM,
        "X-Amz-Credential": f"{credentials.access_key_id}/{scope}",
        "X-Amz-Date": time,
        "X-Amz-Expires": str(VALID_SECONDS),
        "X-Amz-SignedHeaders": "host",
    }
    if credentials.session_token:
        query["X-Amz-Security-Token"] = credentials.session_token.reveal()
    request_hash = hashlib.sha256(_canonical_request(host, query).encode()).hexdigest()
    to_sign = f"{ALGORITHM}\n{time}\n{scope}\n{request_hash}"
    signature = hmac.digest(_signing_key(credentials, time[:8], region), to_sign.encode(), "sha256").hex()
    return query | {"X-Amz-Signature": signature}


def _canonical_request(host: str, query: Mapping[str, str]) -> str:
    pairs = sorted((quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in query.items())
    text = "&".join(f"{name}={value}" for name, value in pairs)
    return f"GET\n/\n{text}\nhost:{host}\n\nhost\n{_NO_BODY}"


def _signing_key(credentials: AwsCredentials, date: str, region: str) -> bytes:
    key = b"AWS4" + credentials.secret_access_key.to_bytes()
    for part in (date, region, SERVICE, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key
