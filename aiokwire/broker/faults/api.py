"""What a test does to a broker: rules, the journal, and nodes that lead, stop and come back.

The part of `Broker` that `aiokwire.testing` documents; programs that only need a Kafka have no use for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar, overload

import anyio

from aiokwire.broker.faults.group_view import GroupView, view_of
from aiokwire.broker.faults.journal import Journal
from aiokwire.broker.faults.rules import Control, On, match_of
from aiokwire.broker.groups import Group
from aiokwire.broker.listeners import Listeners
from aiokwire.broker.state import BrokerState
from aiokwire.broker.topics import Partition
from aiokwire.config import require_int, require_number
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerClosed, InvalidArgument, RequestTimedOut, error_for
from aiokwire.protocol import ApiKey, Request
from aiokwire.records import Record, read_batches

READ_AT_ONCE = 1 << 20  # bytes
WAIT_INTERVAL: Final = 0.005  # seconds between two looks at a topic that a test waits for

R = TypeVar("R", bound=Request[Any])


class Controls:
    """Faults on demand. `Broker` is one."""

    def __init__(self, journal: int) -> None:
        """`journal`: how many requests it keeps, 0 for none."""
        require_int("journal", journal, minimum=0)
        self._control = Control(Journal(journal) if journal else None, self._use_control)
        self._state: BrokerState | None = None  # while it serves
        self._listeners: Listeners | None = None  # likewise

    def _use_control(self) -> None:
        """Let requests come by the rules where there are any; a broker without them spends nothing on them."""
        if self._state is not None:
            self._state.control = self._control if self._control.in_use else None

    @property
    def state(self) -> BrokerState:
        """Topics, logs and configs of the broker while it serves.

        Raises: BrokerClosed: it does not.
        """
        if self._state is None:
            raise BrokerClosed("this Broker does not serve: start it first, or use `async with`")
        return self._state

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
        """The next requests of an API, for a rule; what becomes of them says the verb: `broker.on(...).close()`.

        Only requests that name the topic or partition, come to the node, carry the client id and satisfy `when` count.
        The rule begins with the `nth` of them and ends after `times` (None: never). Rules are served in the order in
        which they were made; the first one that fits has the request.

        Raises: InvalidArgument: an API that the broker does not serve, or no such node.
        """
        if times is not None:
            require_int("times", times, minimum=1)
        require_int("nth", nth, minimum=1)
        if node is not None and self._state is not None:
            self._state.nodes.get(node)
        match = match_of(api, topic=topic, partition=partition, node=node, client_id=client_id, when=when)
        return On(self._control, match, times=times, nth=nth)

    def clear_rules(self) -> None:
        """End every rule; requests that are held go on."""
        self._control.clear()

    @property
    def journal(self) -> Journal:
        """The requests that came.

        Raises: InvalidArgument: the broker keeps none.
        """
        if self._control.journal is None:
            raise InvalidArgument("this Broker keeps no journal: make it with Broker(journal=1000)")
        return self._control.journal

    def records(self, topic: str, partition: int | None = None) -> list[Record]:
        """What a topic holds, or one of its partitions, without a client; for topics of a test's size.

        Raises: BrokerError: there is no such topic or partition.
        """
        found: list[Record] = []
        if partition is not None:
            partitions = [self._partition(topic, partition)]
        else:
            partitions = self.state.topics.require(topic).partitions
        for one in partitions:
            offset = one.log.log_start_offset
            while offset < one.log.end_offset:
                data = one.log.read(offset, READ_AT_ONCE, min_one=True).data
                for batch in read_batches(data, topic, one.index):
                    if not batch.is_control:
                        found += batch.records(offset)
                    offset = batch.next_offset
        return found

    async def wait_for_records(self, topic: str, count: int, *, timeout: float = 10.0) -> list[Record]:
        """Wait until a topic holds at least `count` records, and return all of them; the topic need not exist yet.

        `timeout` in seconds.

        Raises: RequestTimedOut: naming how many there are.
        """
        found: list[Record] = []
        with anyio.move_on_after(timeout):
            while True:
                if self._size_of(topic) >= count:  # at most: control batches and compaction leave fewer
                    found = self.records(topic)
                    if len(found) >= count:
                        return found
                await anyio.sleep(WAIT_INTERVAL)
        have = len(found) or self._size_of(topic)
        raise RequestTimedOut(f"topic {topic!r} has {have} of {count} record(s) after {timeout} s")

    def _size_of(self, topic: str) -> int:
        known = self.state.topics.get(topic)
        partitions = known.partitions if known is not None else ()
        return sum(each.log.end_offset - each.log.log_start_offset for each in partitions)

    # --- leaders and coordinators -------------------------------------------------------------------------------------

    @property
    def nodes(self) -> tuple[int, ...]:
        """The ids of all nodes."""
        return self.state.nodes.ids

    def address(self, node: int) -> str:
        """Where clients reach one node, `host:port`.

        Raises: InvalidArgument: there is no such node.
        """
        return str(self.state.nodes.get(node).endpoint)

    def leader(self, topic: str, partition: int) -> int:
        """The node that leads a partition.

        Raises: BrokerError: there is no such partition.
        """
        return self._partition(topic, partition).leader

    def move_leader(self, topic: str, partition: int, node: int) -> int:
        """Let a node lead a partition from now on; gives back the new leader epoch.

        Raises: InvalidArgument: there is no such node, or it is stopped. BrokerError: no such partition.
        """
        moved = self._partition(topic, partition)
        self._running(node)
        self.state.nodes.move(moved, node)
        return moved.leader_epoch

    def coordinator(self, key: str) -> int:
        """The node that coordinates a group or transactional id."""
        return self.state.nodes.coordinator(key).id

    def move_coordinator(self, key: str, node: int, *, load_seconds: float = 0.0) -> None:
        """Let a node coordinate a group or transactional id from now on.

        It reads the group from the log, as a Kafka does: members that wait in JoinGroup or SyncGroup get
        NOT_COORDINATOR, a rebalance under way is forgotten, and for `load_seconds` requests about the group get
        COORDINATOR_LOAD_IN_PROGRESS.

        Raises: InvalidArgument: there is no such node, or it is stopped.
        """
        require_number("load_seconds", load_seconds, minimum=0)
        self._running(node)
        before = self._group_coordinators()
        self.state.nodes.move_coordinator(key, node)
        self._hand_over_groups(before, load_seconds)

    def _group_coordinators(self) -> dict[str, int]:
        return {group_id: self.coordinator(group_id) for group_id in self.state.groups.ids()}

    def _hand_over_groups(self, before: dict[str, int], load_seconds: float = 0.0) -> None:
        """Let the groups whose coordinator is another one now be read by it."""
        moved = [group_id for group_id, node in before.items() if self.coordinator(group_id) != node]
        self.state.groups.hand_over(moved, load_seconds)

    def freeze_metadata(self) -> None:
        """Let every node tell the leaders and nodes of this moment, whatever happens to them, until `thaw_metadata`.

        Answers give no hints about new leaders meanwhile.
        """
        self.state.nodes.freeze(self.state.partitions())

    def thaw_metadata(self) -> None:
        """Let metadata be true again."""
        self.state.nodes.thaw()

    # --- groups -------------------------------------------------------------------------------------------------------

    def group(self, group_id: str) -> GroupView:
        """What the coordinator knows of a group.

        Raises: BrokerError: there is no such group.
        """
        return view_of(self._group(group_id))

    def evict(self, group_id: str, member_id: str) -> None:
        """Let a member's session end now, as if it had not been heard of in time.

        Raises: BrokerError: there is no such group or member. StorageError.
        """
        if member_id not in self._group(group_id).members:
            raise error_for(ErrorCode.UNKNOWN_MEMBER_ID, f"member {member_id!r} of group {group_id!r}")
        self.state.groups.evict(group_id, member_id)

    def rebalance(self, group_id: str) -> None:
        """Begin a rebalance of a group, for no other reason.

        Raises: BrokerError: there is no such group, or it has no members. StorageError.
        """
        if not self._group(group_id).members:
            raise error_for(ErrorCode.UNKNOWN_MEMBER_ID, f"group {group_id!r} has no members")
        self.state.groups.rebalance(group_id)

    def _group(self, group_id: str) -> Group:
        found = self.state.groups.find(group_id)
        if found is None:
            raise error_for(ErrorCode.GROUP_ID_NOT_FOUND, f"group {group_id!r}")
        return found

    # --- nodes --------------------------------------------------------------------------------------------------------

    async def stop_node(self, node: int, *, fail_over: bool = True) -> None:
        """Cut a node off: its port refuses, its connections break, requests in its hands are not answered.

        The partitions that it led go to nodes that run; with `fail_over=False` nobody leads them until it is back. The
        keys that it coordinates go to others in any case. Nothing happens when it is stopped already.

        Raises: InvalidArgument: there is no such node.
        """
        stopped = self.state.nodes.get(node)
        if not stopped.running:
            return
        before = self._group_coordinators()
        await self._serving().stop(stopped)
        self._hand_over_groups(before)
        if fail_over:
            self.state.nodes.fail_over(self.state.partitions(), node)

    async def start_node(self, node: int) -> None:
        """Bring a stopped node back at its port. It leads what it still led, nothing else.

        Raises: InvalidArgument: there is no such node. ConnectionFailed: somebody else took its port.
        """
        started = self.state.nodes.get(node)
        if not started.running:
            before = self._group_coordinators()
            await self._serving().start(started)
            self._hand_over_groups(before)

    # --- parts --------------------------------------------------------------------------------------------------------

    def _serving(self) -> Listeners:
        if self._listeners is None:
            raise BrokerClosed("this Broker does not serve: start it first, or use `async with`")
        return self._listeners

    def _partition(self, topic: str, partition: int) -> Partition:
        found = self.state.topics.partition(topic, partition)
        if found is None:
            raise error_for(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic}[{partition}]", topic=topic, partition=partition
            )
        return found

    def _running(self, node: int) -> None:
        if not self.state.nodes.get(node).running:
            raise InvalidArgument(f"node {node} is stopped")
