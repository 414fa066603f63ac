"""A secret: a text that `repr`, `str`, formatting, logs and tracebacks do not show.

The only module that takes randomness from the operating system: a nonce or a salt must not follow
from a seed. Code that needs reproducible runs accepts them as arguments.
"""

from __future__ import annotations

import base64
import os
from typing import Final

from aiokwire.errors import ConfigurationError

HIDDEN: Final = "***"


class Secret:
    """A password, a key or a token. Only `reveal` returns its text."""

    __slots__ = ("_text",)

    def __init__(self, text: str | Secret) -> None:
        self._text: str = text.reveal() if isinstance(text, Secret) else text

    def reveal(self) -> str:
        """Return the text. Pass it to the function that needs it, and keep no copy."""
        return self._text

    def to_bytes(self) -> bytes:
        """Return the text in UTF-8.

        Raises: ConfigurationError: it has surrogates. Python's own error would contain the text.
        """
        try:
            return self._text.encode()
        except UnicodeEncodeError:
            raise ConfigurationError("a password or key has characters that UTF-8 cannot encode") from None

    def __repr__(self) -> str:
        return HIDDEN

    def __format__(self, spec: str) -> str:
        return format(HIDDEN, spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash((Secret, self._text))

    def __bool__(self) -> bool:
        return bool(self._text)


class SecretBytes(bytes):
    """The bytes of a login: a message that contains a password or a token."""

    __slots__ = ()

    def __repr__(self) -> str:
        return HIDDEN

    __str__ = __repr__


def random_bytes(count: int) -> bytes:
    """Return random bytes that cannot be predicted, for salts and keys."""
    return os.urandom(count)


def random_text(count: int) -> str:
    """Return `count` random bytes in URL-safe base64, for nonces and passwords."""
    return base64.urlsafe_b64encode(random_bytes(count)).rstrip(b"=").decode()
