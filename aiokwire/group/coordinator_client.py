"""The way of a member to its coordinator: one attempt at a time, so that the member decides what a failure means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import anyio

from aiokwire.cluster import COORDINATOR, JOIN, Client, CoordinatorKind
from aiokwire.errors import BrokerError, ConnectionFailed, KafkaError, RequestTimedOut
from aiokwire.group.classic.decisions import MOVED
from aiokwire.group.status import MemberStatus
from aiokwire.net import Address, ApiVersions, Connection
from aiokwire.protocol import Request, Response

ResponseT = TypeVar("ResponseT", bound=Response)


class CoordinatorClient:
    """Requests of one group to wherever it is coordinated now."""

    def __init__(self, client: Client, group_id: str, status: MemberStatus) -> None:
        self.status = status
        self._client = client
        self._group_id = group_id

    async def ask(
        self,
        request: Request[ResponseT],
        *,
        timeout: float,
        lane: str = COORDINATOR,
        version: Callable[[ApiVersions], int] | None = None,
    ) -> ResponseT:
        """The answer, whatever its code. `timeout` in seconds bounds the look-up, and then the answer; a coordinator
        that did not answer, or that says it is none, is looked up again next time.

        Raises: ConnectionFailed, RequestTimedOut: no answer; BrokerError: the group may not be looked up;
        UnsupportedVersion, ProtocolViolation; ClosedError.
        """
        client = self._client
        node_id, _ = await self.find(timeout)
        connection: Connection | None = None
        try:
            connection = await client.connection(node_id, lane, min(timeout, client.config.request_timeout))
            silent = connection.throttled_until - anyio.current_time()
            if silent > 0:
                await client.pause(min(silent, timeout))
            picked = None if version is None else version(connection.versions)
            answer: ResponseT = await connection.request(request, timeout=timeout, version=picked)
        except (ConnectionFailed, RequestTimedOut) as error:
            self.lost(node_id, error)
            raise
        except anyio.get_cancelled_exc_class():
            if connection is not None and lane == JOIN:
                connection.abort()  # the next request there would be looked at when this one has been answered
            raise
        code: Any = getattr(answer, "error_code", 0)
        if code in MOVED:
            self.moved()
        else:
            self.status.answered(node_id)
        return answer

    async def find(self, timeout: float) -> tuple[int, Address]:
        """The coordinator, as it is known or looked up.

        Raises: BrokerError: the group may not be looked up; ConnectionFailed, RequestTimedOut: nobody said.
        """
        client = self._client
        node_id = await client.coordinators.find(CoordinatorKind.GROUP, self._group_id, timeout)
        address = client.nodes.address(node_id)
        if address is None:
            self.moved()
            raise ConnectionFailed(f"the coordinator, node {node_id}, is not in the metadata", stage="resolve")
        return node_id, address

    def moved(self) -> None:
        """It said that it is no coordinator of ours: look up again next time."""
        self._client.coordinators.forget(CoordinatorKind.GROUP, self._group_id)
        self.status.lost("it does not coordinate the group now")

    def lost(self, node_id: int, error: KafkaError) -> None:
        """It did not answer: look up again next time."""
        self._client.coordinators.forget_node(node_id)
        self.status.lost(str(error))
        self._client.metadata.request_update(f"the coordinator of group {self._group_id!r}: {error}")


def is_passing(error: KafkaError) -> bool:
    """Whether what failed may succeed when it is tried again."""
    return isinstance(error, (ConnectionFailed, RequestTimedOut)) or (
        isinstance(error, BrokerError) and error.retriable
    )
