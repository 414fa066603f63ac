"""The names of cipher suites: those of the TLS registry, which Java uses, and OpenSSL's."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_NEWEST: Final = re.compile(r"TLS_(?:AES_128|AES_256|CHACHA20)_[A-Z0-9_]+")  # of TLS 1.3, without _WITH_
_REGISTERED: Final = re.compile(r"(?:TLS|SSL)_([A-Z_]+?)_WITH_([A-Z0-9_]+)")


def openssl_ciphers(suites: Iterable[str]) -> list[str]:
    """Return OpenSSL's names of the suites up to TLS 1.2; those of TLS 1.3 are left out.

    A name that is not of the registry's form is returned as it is: it may be OpenSSL's.
    """
    return [_openssl_name(suite) for suite in suites if not _NEWEST.fullmatch(suite)]


def _openssl_name(suite: str) -> str:
    found = _REGISTERED.fullmatch(suite)
    if found is None:
        return suite
    exchange, cipher = found.groups()
    prefix = "" if exchange == "RSA" else exchange.replace("_", "-") + "-"
    cipher = cipher.replace("_POLY1305_SHA256", "_POLY1305").replace("AES_128", "AES128").replace("AES_256", "AES256")
    return prefix + cipher.replace("_CBC_SHA", "_SHA").replace("CCM_8", "CCM8").replace("_", "-")
