"""Routes requests to their targets, and retries them until a deadline. See `Client.request`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import anyio

from aiokwire.backoff import Deadline
from aiokwire.clock import loop_time
from aiokwire.cluster.nodes import COORDINATOR, MAIN
from aiokwire.cluster.targets import AnyNode, Controller, Coordinator, Leader, Node, Target
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import (
    AuthenticationFailed,
    BrokerError,
    ConnectionFailed,
    KafkaError,
    RequestTimedOut,
    error_for,
    is_transient,
)
from aiokwire.net import ApiVersions, Connection
from aiokwire.protocol import ApiKey, Request, Response

if TYPE_CHECKING:
    from aiokwire.cluster.client import Client

ResponseT = TypeVar("ResponseT", bound=Response)
# A version, or a function that chooses it from the versions of the node; None: the newest.
Version: TypeAlias = int | Callable[[ApiVersions], int] | None

# Codes that make the router look the target up again, or wait, by the kind of target.
COORDINATOR_CODES: Final = frozenset(
    {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
)
CONTROLLER_CODES: Final = frozenset({ErrorCode.NOT_CONTROLLER})

# Requests that only read (or waste a number, InitProducerId): several nodes may be asked at the same time.
REPEATABLE: Final = frozenset(
    {
        ApiKey.METADATA,
        ApiKey.FIND_COORDINATOR,
        ApiKey.INIT_PRODUCER_ID,
        ApiKey.API_VERSIONS,
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.DESCRIBE_ACLS,
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
    }
)


class ProduceUncertain(KafkaError):
    """A Produce request without a response: it may be written; a retry could write a duplicate."""


class Router:
    """The retry loop of one client."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def request(
        self, request: Request[ResponseT], to: Target, timeout: float | None, version: Version
    ) -> ResponseT:
        """See `Client.request`."""
        config = self._client.config
        limit = config.default_api_timeout if timeout is None else timeout
        journey = _Journey(self._client, request, to, version, Deadline(limit, f"{type(request).__name__} to {to}"))
        with anyio.CancelScope(deadline=journey.deadline.at):
            answer: ResponseT = await journey.run()
            return answer
        raise journey.late()


class _Journey:
    """One request with all its attempts."""

    def __init__(self, client: Client, request: Request[Any], to: Target, version: Version, deadline: Deadline) -> None:
        self._client = client
        self._request = request
        self._to = to
        self._version = version
        self.deadline = deadline
        self._attempts = 0
        self._avoid: set[int] = set()  # nodes that failed since the last pause
        self._last_error: KafkaError | None = None
        self._throttle = ""  # describes the throttling of the current wait

    async def run(self) -> Any:
        """Repeat attempts until one succeeds.

        Raises: KafkaError: an error that a retry cannot change.
        """
        backoff = self._client.new_backoff()
        while True:
            self._client.check()
            self._attempts += 1
            try:
                return await self._attempt()
            except KafkaError as error:
                is_refused = isinstance(error, AuthenticationFailed)
                if not is_transient(error) and not (is_refused and self._has_another_node()):
                    raise
                self._last_error = error.with_traceback(None)
            if not self._has_another_node():
                self._avoid.clear()
                await self._client.pause(backoff.next())

    def late(self) -> KafkaError:
        """Return the error at the deadline: the last one of a broker, if any."""
        if isinstance(self._last_error, BrokerError):
            return self._last_error
        error = self.deadline.error(self._last_error)
        throttled = f"; {self._throttle}" if self._throttle else ""
        error.args = (f"{error} ({self._attempts} attempt(s)){throttled}",)
        return error

    async def _attempt(self) -> Any:
        if isinstance(self._to, AnyNode) and self._is_repeatable():
            return await self._client.race_nodes(lambda node_id: self._ask(node_id, MAIN), self._avoid)
        return await self._ask(*await self._route())

    def _is_repeatable(self) -> bool:
        """Return whether a second node may be asked before the first one responds.

        The request must change nothing, and must not let the broker wait.
        """
        return self._request.API in REPEATABLE and not self._broker_wait()

    async def _ask(self, node_id: int, lane: str) -> Any:
        """Send the request to one node, once."""
        sent = False
        try:
            connection = await self._client.nodes.connection(node_id, lane, self.deadline.remaining)
            await self._wait_for_turn(connection)
            sent = self._request.API is ApiKey.PRODUCE
            version = self._version(connection.versions) if callable(self._version) else self._version
            answer = await connection.request(
                self._request, version=version, timeout=self._client.config.request_timeout + self._broker_wait()
            )
        except (AuthenticationFailed, ConnectionFailed, RequestTimedOut) as error:
            self._avoid.add(node_id)
            self._after_loss(node_id, error)
            if sent:
                raise ProduceUncertain(
                    f"{self.deadline.what}: the records may have been written, so they are not sent again: {error}"
                ) from error
            raise
        self._check_answer(answer, node_id)
        return answer

    async def _wait_for_turn(self, connection: Connection) -> None:
        """Wait while this client is throttled (KIP-219), and until the transport has room."""
        wait = connection.throttled_until - loop_time()
        if wait > 0:
            self._throttle = f"{connection.who} throttles this client for another {wait:.1f} s (quotas)"
            await self._client.pause(wait)
            self._throttle = ""
            self._client.check()
        await connection.drained()

    def _broker_wait(self) -> float:
        """Return the seconds that the request lets the broker wait before it responds."""
        return self._request.broker_wait_ms() / 1000

    # --- the target --------------------------------------------------------------------------------------------------

    async def _route(self) -> tuple[int, str]:
        """Return the node and the lane.

        Raises: ConnectionFailed, RetriableError: no node is known now; BrokerError: retrying cannot
        find one.
        """
        to = self._to
        if isinstance(to, Node):
            return to.node_id, to.lane
        if isinstance(to, Coordinator):
            return await self._client.coordinators.find(to.kind, to.key, self.deadline.remaining), COORDINATOR
        if isinstance(to, Leader):
            return await self._leader(to), MAIN
        if isinstance(to, Controller):
            controller = self._client.cluster.controller_id
            if controller in self._client.cluster.brokers and controller not in self._avoid:
                return controller, MAIN
        node_id = self._client.nodes.least_loaded(self._avoid)
        if node_id is None:
            self._client.metadata.request_update("no broker is known")
            raise ConnectionFailed("the metadata contains no broker to send the request to", stage="resolve")
        return node_id, MAIN

    async def _leader(self, to: Leader) -> int:
        metadata = self._client.metadata
        cluster = await metadata.wait_for_topics([to.tp.topic], self.deadline.remaining)
        if cluster.leader(to.tp) is None:
            metadata.request_update(f"{to.tp} has no leader")
        return cluster.require_leader(to.tp, type(self._request).__name__)

    def _has_another_node(self) -> bool:
        """Return whether to retry at once: any node can respond, and some have not failed yet."""
        brokers = self._client.cluster.brokers
        return isinstance(self._to, (AnyNode, Controller)) and 0 < len(self._avoid) < len(brokers)

    # --- the response ------------------------------------------------------------------------------------------------

    def _after_loss(self, node_id: int, error: KafkaError) -> None:
        if isinstance(self._to, Coordinator):
            self._client.coordinators.forget_node(node_id)
        self._client.metadata.request_update(f"node {node_id}: {error}")

    def _check_answer(self, answer: Response, node_id: int) -> None:
        """Raises: BrokerError: the error code requires another node, or a later attempt."""
        if isinstance(self._to, Coordinator):
            code = next((code for code in answer.error_codes() if code in COORDINATOR_CODES), 0)
            if not code:
                return
            if code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                self._client.coordinators.forget(self._to.kind, self._to.key)
        elif isinstance(self._to, Controller):
            code = next((code for code in answer.error_codes() if code in CONTROLLER_CODES), 0)
            if not code:
                return
            self._client.metadata.request_update(f"node {node_id} is not the controller")
            self._avoid.add(node_id)
        else:
            return
        raise error_for(
            code, f"{self.deadline.what}, requested from node {node_id}", request=type(self._request).__name__
        )


def most_severe(errors: Collection[Exception]) -> Exception:
    """Return the error of a race without a winner: one that is not transient, else the last."""
    return next((error for error in errors if not is_transient(error)), list(errors)[-1])
