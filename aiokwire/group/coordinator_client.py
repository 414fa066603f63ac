"""Sends a member's requests to its coordinator: one attempt each, the member handles failures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import anyio

from aiokwire.clock import loop_time
from aiokwire.cluster import COORDINATOR, JOIN, Client, CoordinatorKind
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import AuthenticationFailed, ConnectionFailed, KafkaError, RequestTimedOut
from aiokwire.group.status import MemberStatus
from aiokwire.net import Address, ApiVersions, Connection
from aiokwire.protocol import Request, Response

ResponseT = TypeVar("ResponseT", bound=Response)

# Codes after which the coordinator must be looked up again.
MOVED: Final = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})


class CoordinatorClient:
    """Requests of one member to its coordinator. Owned by the member; runs on its loop."""

    def __init__(self, client: Client, group_id: str, status: MemberStatus) -> None:
        self.status = status
        self._client = client
        self._group_id = group_id

    async def request(
        self,
        request: Request[ResponseT],
        *,
        timeout: float,
        lane: str = COORDINATOR,
        version: Callable[[ApiVersions], int] | None = None,
    ) -> ResponseT:
        """Return the response, whatever its error code. `timeout` (seconds) applies to the lookup
        and to the response. If the coordinator does not respond, or has moved, the next request
        looks it up again.

        Raises: ConnectionFailed, RequestTimedOut: no response; BrokerError: the lookup was refused;
        UnsupportedVersion, ProtocolViolation; ClosedError.
        """
        client = self._client
        node_id, _ = await self.find(timeout)
        connection: Connection | None = None
        try:
            connection = await client.connection(node_id, lane, min(timeout, client.config.request_timeout))
            throttled_for = connection.throttled_until - loop_time()
            if throttled_for > 0:
                await client.pause(min(throttled_for, timeout))
            picked = None if version is None else version(connection.versions)
            answer: ResponseT = await connection.request(request, timeout=timeout, version=picked)
        except (AuthenticationFailed, ConnectionFailed, RequestTimedOut) as error:
            self.on_lost(node_id, error)
            raise
        except anyio.get_cancelled_exc_class():
            if connection is not None and lane == JOIN:
                connection.abort()  # a pending join would delay the next request on this connection
            raise
        if any(code in MOVED for code in answer.error_codes()):
            self.on_moved()
        else:
            self.status.answered(node_id)
        return answer

    async def find(self, timeout: float) -> tuple[int, Address]:
        """Return the coordinator, cached or looked up.

        Raises: BrokerError: the lookup was refused; ConnectionFailed, RequestTimedOut: no broker
        responded.
        """
        client = self._client
        node_id = await client.coordinators.find(CoordinatorKind.GROUP, self._group_id, timeout)
        address = client.nodes.address(node_id)
        if address is None:
            self.on_moved()
            raise ConnectionFailed(f"the coordinator, node {node_id}, is not in the metadata", stage="resolve")
        return node_id, address

    def on_moved(self) -> None:
        """Make the next request look the coordinator up: it has moved from this node."""
        self._client.coordinators.forget(CoordinatorKind.GROUP, self._group_id)
        self.status.lost("the node does not coordinate the group now")

    def on_lost(self, node_id: int, error: KafkaError) -> None:
        """Make the next request look the coordinator up: this node did not respond."""
        self._client.coordinators.forget_node(node_id)
        self.status.lost(str(error))
        self._client.metadata.request_update(f"the coordinator of group {self._group_id!r}: {error}")
