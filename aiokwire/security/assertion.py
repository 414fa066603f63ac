"""Assertions of the JWT bearer grant (RFC 7523, KIP-1139): read from a file, or signed with a key.

Blocking, because it reads files: call it in a thread.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from aiokwire.clock import wall_ms
from aiokwire.errors import AuthenticationFailed, ConfigurationError
from aiokwire.security.config import SecurityConfig
from aiokwire.security.jwt import MAX_TOKEN, encoded_bytes, sign
from aiokwire.security.secret import Secret, random_text

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
