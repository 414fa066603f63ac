"""The identity of a connection (Java: `KafkaPrincipal`)."""

from __future__ import annotations

from typing import Final, NamedTuple


class Principal(NamedTuple):
    """A user, by its type and name."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS: Final = Principal("User", "ANONYMOUS")
