"""Lookup of the coordinators of groups and transactions, with a cache.

Equal lookups share one request; concurrent lookups are sent together where the broker supports it
(KIP-699). Requests run in the client's task group, so that a cancelled caller does not cancel the
lookup of others.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, Protocol

import anyio

from aiokwire.backoff import Backoff, Deadline
from aiokwire.cluster.nodes import Spawn
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import AuthenticationFailed, BrokerError, ClosedError, KafkaError, error_for
from aiokwire.net import Address, ApiVersions
from aiokwire.protocol.messages import find_coordinator


class CoordinatorKind(enum.IntEnum):
    """The kind of a coordinator's key; numbered as in the protocol."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


class Transport(Protocol):
    """Sends one request to any node, and to others while it does not respond. See `Client`."""

    async def ask_any(self, build: Callable[[ApiVersions], tuple[Any, int]]) -> Any:
        """Return the response to the request that `build` makes, with its version."""


Key = tuple[CoordinatorKind, str]


class _Lookup:
    """The lookup of one key, shared by its callers."""

    __slots__ = ("done", "error", "last_error", "node_id", "waiters")

    def __init__(self) -> None:
        self.done = anyio.Event()
        self.node_id: int | None = None
        self.error: KafkaError | None = None  # final: no retry helps
        self.last_error: KafkaError | None = None  # of an attempt that may succeed later
        self.waiters = 0


class Coordinators:
    """The known coordinators of one client."""

    def __init__(
        self,
        transport: Transport,
        *,
        spawn: Spawn,
        learn: Callable[[int, Address], None],
        new_backoff: Callable[[], Backoff],
    ) -> None:
        self._transport = transport
        self._spawn = spawn
        self._learn = learn
        self._new_backoff = new_backoff
        self._known: dict[Key, int] = {}
        self._lookups: dict[Key, _Lookup] = {}
        self._asking: set[CoordinatorKind] = set()  # kinds whose task is running

    async def find(self, kind: CoordinatorKind, key: str, timeout: float) -> int:
        """Return the node that coordinates `key`.

        Raises: AuthorizationError, InvalidRequestError: the broker refuses; RequestTimedOut: it was
        not found in time.
        """
        known = self._known.get((kind, key))
        if known is not None:
            return known
        lookup = self._lookups.setdefault((kind, key), _Lookup())
        deadline = Deadline(timeout, f"finding the coordinator of {kind.name.lower()} {key!r}")
        lookup.waiters += 1
        try:
            if kind not in self._asking:
                self._begin(kind)
            with anyio.CancelScope(deadline=deadline.at):
                await lookup.done.wait()
        finally:
            lookup.waiters -= 1
        if lookup.error is not None:
            raise lookup.error.with_traceback(None)
        if lookup.node_id is None:
            raise deadline.error(lookup.last_error)
        return lookup.node_id

    def forget(self, kind: CoordinatorKind, key: str) -> None:
        """Drop a coordinator that is no longer valid: the next call looks it up again."""
        self._known.pop((kind, key), None)

    def forget_node(self, node_id: int) -> None:
        """Drop all coordinators on a node that is gone."""
        for key in [key for key, known in self._known.items() if known == node_id]:
            del self._known[key]

    def fail(self, error: KafkaError) -> None:
        """Fail all lookups: the client has ended."""
        for lookup in self._lookups.values():
            lookup.error = error
            lookup.done.set()
        self._lookups.clear()

    def _begin(self, kind: CoordinatorKind) -> None:
        async def run() -> None:
            await self._run(kind)

        self._asking.add(kind)
        try:
            self._spawn(run, name=f"find coordinators ({kind.name.lower()})")
        except ClosedError:
            self._asking.discard(kind)
            raise

    async def _run(self, kind: CoordinatorKind) -> None:
        """Send requests while callers wait for a coordinator of this kind."""
        backoff = self._new_backoff()
        try:
            while keys := self._open_keys(kind):
                try:
                    await self._ask(kind, keys)
                except KafkaError as error:
                    self._note(kind, keys, error)
                if self._open_keys(kind):
                    await anyio.sleep(backoff.next())
        finally:
            self._asking.discard(kind)

    def _open_keys(self, kind: CoordinatorKind) -> list[str]:
        """Return the keys of the kind that callers wait for; drop the others."""
        for each in [each for each, lookup in self._lookups.items() if each[0] is kind and not lookup.waiters]:
            del self._lookups[each]
        return [key for each, key in self._lookups if each is kind]

    async def _ask(self, kind: CoordinatorKind, keys: list[str]) -> None:
        """Send one request for all `keys`, or one each if the broker does not support several."""

        def build(versions: ApiVersions) -> tuple[find_coordinator.FindCoordinatorRequest, int]:
            version = versions.pick(find_coordinator.FindCoordinatorRequest)
            if version >= 4:
                return find_coordinator.FindCoordinatorRequest(key_type=kind, coordinator_keys=keys), version
            return find_coordinator.FindCoordinatorRequest(key=keys[0], key_type=int(kind)), version

        while keys:
            answer: find_coordinator.FindCoordinatorResponse = await self._transport.ask_any(build)
            if answer.coordinators or not (answer.host or answer.error_code):  # from version 4 on, it is a list
                for found in answer.coordinators:
                    self._settle((kind, found.key), found.error_code, found.node_id, Address(found.host, found.port))
                return
            self._settle((kind, keys[0]), answer.error_code, answer.node_id, Address(answer.host, answer.port))
            keys = keys[1:]

    def _settle(self, key: Key, code: int, node_id: int, address: Address) -> None:
        lookup = self._lookups.get(key)
        if lookup is None:
            return
        if code == ErrorCode.NONE:
            self._known[key] = lookup.node_id = node_id
            self._learn(node_id, address)
        else:
            error = error_for(
                code, f"finding the coordinator of {key[0].name.lower()} {key[1]!r}", request="FindCoordinator"
            )
            if error.retriable:
                lookup.last_error = error
                return
            lookup.error = error
        del self._lookups[key]
        lookup.done.set()

    def _note(self, kind: CoordinatorKind, keys: list[str], error: KafkaError) -> None:
        """Record a failed request. It is final if a retry cannot help."""
        final = isinstance(error, (AuthenticationFailed, ClosedError)) or (
            isinstance(error, BrokerError) and not error.retriable
        )
        for key in keys:
            lookup = self._lookups.get((kind, key))
            if lookup is None:
                continue
            lookup.last_error = error.with_traceback(None)
            if final:
                lookup.error = lookup.last_error
                del self._lookups[kind, key]
                lookup.done.set()
