"""`Broker.faults`: faults on demand, for tests. Rules; leaders, coordinators, groups and nodes.

Documented in `aiokwire.testing`; programs that only need a broker do not use it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar, overload

from aiokwire.broker.faults.rules import Interceptor, On, Terms, match_of
from aiokwire.broker.groups import ClassicGroup, Group
from aiokwire.broker.server import Listeners
from aiokwire.broker.state import BrokerState
from aiokwire.config import require_int, require_number
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerClosed, InvalidArgument, error_for
from aiokwire.protocol import ApiKey, Request

R = TypeVar("R", bound=Request[Any])


class Serving(NamedTuple):
    """The parts of a broker that exist while it serves."""

    state: BrokerState
    listeners: Listeners


@dataclasses.dataclass(frozen=True)
class GroupView:
    """A copy of a group's state at one moment, for assertions of tests."""

    group_id: str
    protocol: str
    """`classic` or `consumer`."""
    state: str
    """Its name in Kafka's tools: `Stable`, `Empty`, ..."""
    generation: int
    """In the consumer protocol the group's epoch."""
    leader: str | None
    """The member id of the leader; the consumer protocol has none."""
    members: Mapping[str, str | None]
    """The group instance ids by member id, in the order of joining."""


class Faults:
    """Causes faults in a broker. Owned by a `Broker`; its methods run on the broker's loop."""

    def __init__(self, interceptor: Interceptor, find_serving: Callable[[], Serving | None]) -> None:
        """`find_serving` returns None while the broker is not running."""
        self._interceptor = interceptor
        self._find_serving = find_serving

    # --- rules --------------------------------------------------------------------------------------------------------

    @overload
    def on(
        self,
        api: type[R],
        *,
        topic: str | None = None,
        partition: int | None = None,
        node: int | None = None,
        client_id: str | None = None,
        times: int | None = 1,
        nth: int = 1,
        when: Callable[[R], bool] | None = None,
    ) -> On[R]: ...

    @overload
    def on(
        self,
        api: ApiKey,
        *,
        topic: str | None = None,
        partition: int | None = None,
        node: int | None = None,
        client_id: str | None = None,
        times: int | None = 1,
        nth: int = 1,
        when: Callable[[Any], bool] | None = None,
    ) -> On[Any]: ...

    def on(
        self,
        api: ApiKey | type[Request[Any]],
        *,
        topic: str | None = None,
        partition: int | None = None,
        node: int | None = None,
        client_id: str | None = None,
        times: int | None = 1,
        nth: int = 1,
        when: Callable[[Any], bool] | None = None,
    ) -> On[Any]:
        """Select an API's next requests; a verb makes the rule: `faults.on(ApiKey.FETCH).close()`.

        Only requests that name the topic or partition, arrive at the node, carry the client id and
        pass `when` count. The rule starts with the `nth` of them and ends after `times` (None:
        never). Rules are tried in order of creation; the first that matches is applied.

        Raises: InvalidArgument: an API that the broker does not serve, or no such node.
        """
        if times is not None:
            require_int("times", times, minimum=1)
        require_int("nth", nth, minimum=1)
        serving = self._find_serving()
        if node is not None and serving is not None:
            serving.state.nodes.get(node)
        match = match_of(api, topic=topic, partition=partition, node=node, client_id=client_id, when=when)
        return On(Terms(self._interceptor, match, times, nth))

    def clear_rules(self) -> None:
        """End every rule; held requests are handled now."""
        self._interceptor.clear()

    # --- leaders and coordinators -------------------------------------------------------------------------------------

    def leader(self, topic: str, partition: int) -> int:
        """Return the id of the node that leads a partition.

        Raises: BrokerError: the partition does not exist.
        """
        return self._state.partition(topic, partition).leader

    def move_leader(self, topic: str, partition: int, node: int) -> int:
        """Make a node the leader of a partition; return the new leader epoch.

        Raises: InvalidArgument: no such node, or it is stopped. BrokerError: no such partition.
        """
        moved = self._state.partition(topic, partition)
        self._running(node)
        self._state.nodes.move(moved, node)
        return moved.leader_epoch

    def coordinator(self, key: str) -> int:
        """Return the id of the node that coordinates a group or transactional id."""
        return self._state.nodes.coordinator(key).id

    def move_coordinator(self, key: str, node: int, *, load_seconds: float = 0.0) -> None:
        """Make a node the coordinator of a group or transactional id.

        The node reads the group from the log, as Kafka does: members that wait in JoinGroup or
        SyncGroup get NOT_COORDINATOR, a rebalance in progress is lost, and for `load_seconds`
        requests about the group get COORDINATOR_LOAD_IN_PROGRESS.

        Raises: InvalidArgument: the node does not exist, or is stopped.
        """
        require_number("load_seconds", load_seconds, minimum=0)
        self._running(node)
        before = self._group_coordinators()
        self._state.nodes.move_coordinator(key, node)
        self._hand_over_groups(before, load_seconds)

    def _group_coordinators(self) -> dict[str, int]:
        return {group_id: self.coordinator(group_id) for group_id in self._state.groups.ids()}

    def _hand_over_groups(self, before: dict[str, int], load_seconds: float = 0.0) -> None:
        """Let the new coordinators read the groups that moved to them."""
        moved = [group_id for group_id, node in before.items() if self.coordinator(group_id) != node]
        self._state.groups.hand_over(moved, load_seconds)

    def freeze_metadata(self) -> None:
        """Freeze the leaders and nodes that Metadata responses return, until `thaw_metadata`.

        In the meantime responses carry no hints about new leaders.
        """
        self._state.nodes.freeze(self._state.partitions())

    def thaw_metadata(self) -> None:
        """Return current metadata again."""
        self._state.nodes.thaw()

    # --- groups -------------------------------------------------------------------------------------------------------

    def group(self, group_id: str) -> GroupView:
        """Return the coordinator's view of a group.

        Raises: BrokerError: the group does not exist.
        """
        group = self._group(group_id)
        members = {member_id: member.instance_id for member_id, member in group.members.items()}
        if isinstance(group, ClassicGroup):
            return GroupView(group_id, "classic", group.state.value, group.generation, group.leader, members)
        return GroupView(group_id, "consumer", group.state.value, group.epoch, None, members)

    def evict(self, group_id: str, member_id: str) -> None:
        """End a member's session now, as if its heartbeats had stopped.

        Raises: BrokerError: the group or member does not exist. StorageError.
        """
        if member_id not in self._group(group_id).members:
            raise error_for(ErrorCode.UNKNOWN_MEMBER_ID, f"cannot evict member {member_id!r} of group {group_id!r}")
        self._state.groups.evict(group_id, member_id)

    def rebalance(self, group_id: str) -> None:
        """Start a rebalance of a group.

        Raises: BrokerError: the group does not exist or has no members. StorageError.
        """
        if not self._group(group_id).members:
            raise error_for(ErrorCode.UNKNOWN_MEMBER_ID, f"group {group_id!r} has no members")
        self._state.groups.rebalance(group_id)

    def _group(self, group_id: str) -> Group:
        found = self._state.groups.find(group_id)
        if found is None:
            raise error_for(ErrorCode.GROUP_ID_NOT_FOUND, f"group {group_id!r}")
        return found

    # --- nodes --------------------------------------------------------------------------------------------------------

    async def stop_node(self, node: int, *, fail_over: bool = True) -> None:
        """Stop a node: close its port, break its connections, leave requests without a response.

        Its partitions move to running nodes; with `fail_over=False` they have no leader until it is
        back. The keys that it coordinates always move. Stopping a stopped node changes nothing.

        Raises: InvalidArgument: the node does not exist.
        """
        stopped = self._state.nodes.get(node)
        if not stopped.running:
            return
        before = self._group_coordinators()
        await self._serving().listeners.stop(stopped)
        self._hand_over_groups(before)
        if fail_over:
            self._state.nodes.fail_over(self._state.partitions(), node)

    async def start_node(self, node: int) -> None:
        """Start a stopped node at its port. It leads only the partitions that have not moved.

        Raises: InvalidArgument: the node does not exist. ConnectionFailed: its port is taken.
        """
        started = self._state.nodes.get(node)
        if not started.running:
            before = self._group_coordinators()
            await self._serving().listeners.start(started)
            self._hand_over_groups(before)

    # --- parts --------------------------------------------------------------------------------------------------------

    @property
    def _state(self) -> BrokerState:
        return self._serving().state

    def _serving(self) -> Serving:
        serving = self._find_serving()
        if serving is None:
            raise BrokerClosed("this Broker is not running: start it first, or use `async with`")
        return serving

    def _running(self, node: int) -> None:
        if not self._state.nodes.get(node).running:
            raise InvalidArgument(f"node {node} is stopped")
