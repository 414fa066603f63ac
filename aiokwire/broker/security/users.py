"""Users with passwords, of which only salted keys are kept (KIP-554), for SCRAM and PLAIN.

A user has a credential per mechanism. Those that clients store are in the security file; those
given to `Broker(users=...)` are in memory only, and have precedence.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Iterable, Mapping
from typing import Any, Final

from aiokwire.broker.security.store import SecurityStore
from aiokwire.errors import StorageError
from aiokwire.security import ScramCredential, Secret, credential_of, salted_password, scram_credential
from aiokwire.threads import run_in_thread

SECTION: Final = "scram"
MECHANISMS: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}  # by their numbers in requests
_NOT_A_USER: Final = ScramCredential(bytes(24), 4096, bytes(64), bytes(64))

Credentials = dict[str, dict[str, ScramCredential]]  # by user, then by mechanism


class Users:
    """The users of a broker."""

    def __init__(self, store: SecurityStore) -> None:
        self._store = store
        self._stored: Credentials = {}
        self._given: Credentials = {}

    def load(self) -> None:
        """Read the stored users.

        Raises: StorageError: the section is corrupt.
        """
        try:
            for row in self._store.section(SECTION):
                self._stored.setdefault(row["user"], {})[row["mechanism"]] = _credential(row)
        except (KeyError, TypeError, ValueError) as error:
            raise StorageError(f"the users in the data directory are corrupt: {error!r}") from error

    async def give(self, users: Mapping[str, Secret]) -> None:
        """Take users of this process; their passwords are not stored."""
        for user, password in users.items():
            self._given[user] = {
                mechanism: await run_in_thread(scram_credential, mechanism, password)
                for mechanism in MECHANISMS.values()
            }

    def find(self, mechanism: str, user: str) -> ScramCredential | None:
        """Return the credential of a user for a SCRAM mechanism."""
        return self.credentials(user).get(mechanism)

    def credentials(self, user: str) -> Mapping[str, ScramCredential]:
        """Return the credentials of a user, by mechanism."""
        return self._given.get(user) or self._stored.get(user) or {}

    def names(self) -> list[str]:
        """Return the names of all users."""
        return sorted(self._given.keys() | self._stored.keys())

    async def verify(self, user: str, password: Secret) -> bool:
        """Return whether a user has this password; takes equal time for unknown users."""
        known = self.credentials(user)
        mechanism = next(iter(known), MECHANISMS[1])
        credential = known.get(mechanism, _NOT_A_USER)
        salted = await run_in_thread(salted_password, mechanism, password, credential.salt, credential.iterations)
        derived = credential_of(mechanism, salted, credential.salt, credential.iterations)
        return hmac.compare_digest(derived.stored_key, credential.stored_key)

    async def alter(
        self,
        upserts: Iterable[tuple[str, str, ScramCredential]],
        deletions: Iterable[tuple[str, str]],
    ) -> None:
        """Store credentials of (user, mechanism, credential), delete those of (user, mechanism).

        Raises: StorageError: the file cannot be written; nothing is changed.
        """
        async with self._store.turn(SECTION):
            changed = {user: dict(credentials) for user, credentials in self._stored.items()}
            for user, mechanism in deletions:
                changed.get(user, {}).pop(mechanism, None)
                if not changed.get(user):
                    changed.pop(user, None)
            for user, mechanism, credential in upserts:
                changed.setdefault(user, {})[mechanism] = credential
            await self._store.replace(SECTION, _rows(changed))
            self._stored = changed

    def stored(self, user: str) -> Mapping[str, ScramCredential]:
        """Return the stored credentials of a user, by mechanism: those that clients can alter."""
        return self._stored.get(user, {})


def _rows(stored: Credentials) -> list[dict[str, Any]]:
    return [
        {"user": user, "mechanism": mechanism, **_row(credential)}
        for user, credentials in sorted(stored.items())
        for mechanism, credential in sorted(credentials.items())
    ]


def _row(credential: ScramCredential) -> dict[str, Any]:
    keys = {"salt": credential.salt, "stored_key": credential.stored_key, "server_key": credential.server_key}
    return {
        "iterations": credential.iterations,
        **{name: base64.b64encode(value).decode() for name, value in keys.items()},
    }


def _credential(row: Mapping[str, Any]) -> ScramCredential:
    salt, stored_key, server_key = (
        base64.b64decode(row[name], validate=True) for name in ("salt", "stored_key", "server_key")
    )
    return ScramCredential(salt, int(row["iterations"]), stored_key, server_key)
