"""What every call of the admin client stands on: the connection, its life, and one deadline for each call."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self, Unpack

from aiokwire.admin.config import AdminConfig
from aiokwire.backoff import Deadline
from aiokwire.cluster import ANY, Client, ClientOptions, Owner, Unclosed
from aiokwire.config import config_of
from aiokwire.errors import ClosedError, InvalidArgument, UnsupportedVersion
from aiokwire.hooks import Hooks
from aiokwire.protocol.messages import metadata


class Calls(Owner):
    """The life of an admin client; `GroupCalls` and `Admin` add what it can do."""

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | None = None,
        *,
        config: AdminConfig | None = None,
        hooks: Hooks | None = None,
        rng: random.Random | None = None,
        **options: Unpack[ClientOptions],
    ) -> None:
        """Options are those of `AdminConfig`, or come as one `config`. Needs no running event loop.

        Raises: ConfigurationError: an option is unknown or wrong.
        """
        self.config: AdminConfig = config_of(AdminConfig, config, {"bootstrap_servers": bootstrap_servers, **options})
        self._unclosed = Unclosed()
        self._client = Client(self.config, hooks=hooks, rng=rng, unclosed=self._unclosed)
        self._started = False
        self._closed = False

    # --- life ---------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Connect.

        Raises: ConnectionFailed: no broker could be reached.
        """
        if self._closed:
            raise ClosedError("this admin client was closed; make a new one")
        if not self._started:
            await self._client.start()
            self._started = True
            self._unclosed.watch(self, self.config.client_id)

    async def close(self, timeout: float | None = None) -> None:
        """Disconnect. May be called from any task, and again."""
        self._closed = True
        self._unclosed.forget()
        await self._client.close(timeout=timeout)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else "started" if self._started else "new"
        return f"<{type(self).__name__} {state}, {self.config.bootstrap_servers}>"

    # --- helpers ------------------------------------------------------------------------------------------------------

    async def _metadata(self, names: Sequence[str] | None, deadline: Deadline) -> metadata.MetadataResponse:
        """The topics of `names`; None asks for all of them."""
        self._check_open()
        topics = None if names is None else [metadata.MetadataRequestTopic(name=name) for name in names]
        request = metadata.MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        try:
            return await self._client.request(request, to=ANY, timeout=deadline.remaining)
        except UnsupportedVersion:
            # Version 0 names all topics by an empty list; before version 4 a request cannot forbid creation.
            request = metadata.MetadataRequest(topics=topics)
            version = None
            if names is None:
                request, version = metadata.MetadataRequest(topics=[]), 0
            return await self._client.request(request, to=ANY, timeout=deadline.remaining, version=version)

    def _deadline(self, timeout: float | None, what: str) -> Deadline:
        return Deadline(self.config.default_api_timeout_ms / 1000 if timeout is None else timeout, what)

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("this admin client was closed; make a new one")
        self._client.check()


def milliseconds(deadline: Deadline) -> int:
    """What is left, as requests have it."""
    return round(deadline.remaining * 1000)


def checked_names(names: Iterable[str]) -> list[str]:
    """Return names without repetitions.

    Raises: InvalidArgument: one name was given where several are taken.
    """
    if isinstance(names, str):
        raise InvalidArgument(f"names must be a list of names, not a str: [{names!r}]")
    return list(dict.fromkeys(names))
