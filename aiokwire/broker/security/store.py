"""Users, ACLs, delegation tokens and quotas in one file of the data directory.

Each component owns one section of the file and replaces it as a whole. A change takes effect once
the file has it: in its turn, the component stores the changed rows, then applies them. Passwords
are kept salted only.
"""

from __future__ import annotations

import json
from typing import Any

import anyio

from aiokwire.broker.log import Storage, write_atomically
from aiokwire.errors import StorageError
from aiokwire.threads import run_in_thread

FILE = "aiokwire-security.json"


class SecurityStore:
    """The sections of the file, each a list of JSON objects."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._sections: dict[str, list[dict[str, Any]]] = {}
        self._version = 0
        self._saved = 0  # the version in the file
        self._saving: anyio.Lock | None = None  # created at first use: it belongs to a running loop
        self._turns: dict[str, anyio.Lock] = {}  # by section, created at first use

    def load(self) -> None:
        """Read the file, if there is one.

        Raises: StorageError: it is corrupt or cannot be read.
        """
        content = self._storage.read(FILE)
        if content is None:
            return
        try:
            self._sections = {str(name): list(rows) for name, rows in json.loads(content).items()}
        except (ValueError, AttributeError, TypeError) as error:
            raise StorageError(f"{FILE} in the data directory is corrupt: {error}") from error

    def section(self, name: str) -> list[dict[str, Any]]:
        """Return the rows of a section; empty if nothing was stored."""
        return self._sections.get(name, [])

    def turn(self, name: str) -> anyio.Lock:
        """Return the lock of a section: held from reading its state until a change is applied."""
        return self._turns.setdefault(name, anyio.Lock())

    async def replace(self, name: str, rows: list[dict[str, Any]]) -> None:
        """Store the rows of a section, in its turn. Cannot be cancelled: it waits only for writes.

        Raises: StorageError: the file cannot be written; the section is unchanged.
        """
        before = self.section(name)
        self._sections[name] = rows
        self._version += 1
        try:
            with anyio.CancelScope(shield=True):  # from now on the change of another section may store these rows
                await self._save(self._version)
        except BaseException:  # a later change of another section must not store these rows
            self._sections[name] = before
            raise

    async def _save(self, wanted: int) -> None:
        if self._saving is None:
            self._saving = anyio.Lock()
        async with self._saving:
            if self._saved >= wanted:  # a later call wrote this version, too
                return
            version, content = self._version, json.dumps(self._sections, indent=1).encode()
            await run_in_thread(write_atomically, self._storage, FILE, content)
            self._saved = version
