"""The group coordinator: every group of the broker, of either protocol.

    coordinator.run(group, action, refused)     around a request's action, for the handlers
    join, sync, heartbeat, leave                the classic protocol
    consumer_heartbeat                          the consumer protocol
    commit_fault, fetch_fault                   whether a member may commit or fetch offsets

A group that has only offsets is not kept here; `OffsetStore` keeps its offsets. Requests and
deadlines change groups on the loop, without waiting.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from aiokwire.broker.configs import BrokerConfigs
from aiokwire.broker.groups import classic_decisions, consumer_decisions, consumer_records
from aiokwire.broker.groups.classic_group import ClassicGroup
from aiokwire.broker.groups.classic_protocol import ClassicProtocol
from aiokwire.broker.groups.classic_records import decode_group, group_key
from aiokwire.broker.groups.consumer_decisions import Heartbeat, HeartbeatResult
from aiokwire.broker.groups.consumer_group import JOINING, ConsumerGroup, Part
from aiokwire.broker.groups.consumer_protocol import ConsumerProtocol
from aiokwire.broker.groups.consumer_records import Row, decode_key
from aiokwire.broker.groups.context import Due, GroupContext, Key, Timers
from aiokwire.broker.groups.requests import Committer, Join, Joined, Leaver, Reply, Sync, Synced, too_long
from aiokwire.broker.groups.states import ClassicEvent, ClassicState, ConsumerState
from aiokwire.broker.offsets import OffsetStore
from aiokwire.broker.peers import LastingErrors
from aiokwire.broker.topic_registry import TopicRegistry
from aiokwire.clock import wall_ms
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import StorageError
from aiokwire.records import RecordBatch
from aiokwire.types import TopicPartition

logger: logging.Logger = logging.getLogger(__name__)

Group = ClassicGroup | ConsumerGroup
A = TypeVar("A")
B = TypeVar("B")


class GroupCoordinator:
    """Every group that has or had members."""

    def __init__(
        self,
        topics: TopicRegistry,
        configs: BrokerConfigs,
        rng: random.Random,
        offsets: OffsetStore,
        lasting_errors: LastingErrors,
    ) -> None:
        self._topics = topics
        self._configs = configs
        self._offsets = offsets
        self._lasting_errors = lasting_errors
        self._groups: dict[str, Group] = {}
        self._loading: set[str] = set()  # moved to a node that has not loaded them yet
        self._timers = Timers(self._on_timer)
        context = GroupContext(self._timers, self._append, configs, rng, topics)
        self._classic = ClassicProtocol(context)
        self._consumer = ConsumerProtocol(context)

    def __repr__(self) -> str:
        return f"<GroupCoordinator of {len(self._groups)} groups, {len(self._timers)} deadlines>"

    # --- groups -------------------------------------------------------------------------------------------------------

    def ids(self) -> list[str]:
        """Return the ids of all groups, including those that have only offsets."""
        return sorted({*self._groups, *self._offsets.groups()})

    def states(self) -> list[str]:
        """Return the state of each group that is more than its offsets; from any thread."""
        return [group.state.value for group in list(self._groups.values())]

    def find(self, group_id: str) -> Group | None:
        """Return a group; one that has only offsets is an empty group of the classic protocol."""
        group = self._groups.get(group_id)
        if group is None and self._offsets.of_group(group_id):
            return ClassicGroup(group_id)
        return group

    def _append(self, group_id: str, rows: Sequence[Row]) -> None:
        self._offsets.log.append(group_id, rows, wall_ms())

    # --- loading and deadlines ----------------------------------------------------------------------------------------

    def take_in(self, batch: RecordBatch, only: frozenset[str] | None = None) -> None:
        """Apply a batch of the log to all groups, or to `only` some of them.

        Raises: CorruptRecord.
        """
        if batch.is_control or batch.is_transactional:
            return
        for record in batch.records():
            key = decode_key(record.key)
            group_id = key if isinstance(key, str) or key is None else key.group_id
            if key is None or group_id is None or (only is not None and group_id not in only):
                continue
            if isinstance(key, str):
                if record.value is not None:
                    self._groups[key] = decode_group(key, record.value)
                elif isinstance(self._groups.get(key), ClassicGroup):
                    del self._groups[key]
                continue
            group = self._groups.get(group_id)
            if not isinstance(group, ConsumerGroup):
                if record.value is None:
                    continue
                group = self._groups[group_id] = ConsumerGroup(group_id)
            if record.value is None and key.type is consumer_records.KeyType.GROUP:
                del self._groups[group_id]
            else:
                consumer_records.take_in(group, key, record.value, record.timestamp)

    def start(self) -> None:
        """Start the deadlines of loaded groups. Call it on the loop that serves."""
        for group in self._groups.values():
            self._restored(group)

    def _restored(self, group: Group) -> None:
        if isinstance(group, ClassicGroup):
            self._classic.restored(group)
        else:
            self._consumer.restored(group)

    def close(self) -> None:
        """Cancel all deadlines."""
        self._timers.close()

    def hand_over(self, group_ids: Iterable[str], seconds: float = 0.0) -> None:
        """Load groups again from the log after `seconds`, as their new coordinator does.

        Waiting members get NOT_COORDINATOR; until then requests get COORDINATOR_LOAD_IN_PROGRESS.
        """
        for group_id in group_ids:
            group = self._groups.pop(group_id, None)
            if isinstance(group, ClassicGroup):
                self._classic.unload(group)
            elif group is not None:
                self._consumer.unload(group)
            self._loading.add(group_id)
            self._timers.set(Key(Due.LOAD, group_id), seconds * 1000)

    def _load(self, group_id: str) -> None:
        only = frozenset({group_id})
        for _, batch in self._offsets.log.replay(self._offsets.log.partition_of(group_id)):
            self.take_in(batch, only)
        self._loading.discard(group_id)
        group = self._groups.get(group_id)
        if group is not None:
            self._restored(group)

    def _on_timer(self, key: Key) -> None:
        try:
            self._act_on(key)
        except StorageError as error:
            self._lasting_errors.log(logger, f"group {key.group_id!r}", error)
        except Exception:
            logger.exception("group %r: the %s timer failed", key.group_id, key.due.name)

    def _act_on(self, key: Key) -> None:
        if key.due is Due.LOAD:
            self._load(key.group_id)
            return
        group = self._groups.get(key.group_id)
        if isinstance(group, ConsumerGroup):
            self._consumer.on_timeout(group, key)
        elif group is not None:
            if key.due is Due.SESSION:
                self._classic.on_session_timeout(group, key.member_id)
            elif key.due is Due.PENDING:
                self._classic.on_pending_timeout(group, key.member_id)
            elif key.due is Due.JOIN:
                self._classic.on_join_timeout(group)
            else:
                self._classic.on_sync_timeout(group)
            self._forget_if_unused(group)

    def _forget_if_unused(self, group: ClassicGroup) -> None:
        """Remove a group that has never had a member."""
        if group.never_had_members and self._groups.get(group.group_id) is group:
            del self._groups[group.group_id]

    # --- around a request ---------------------------------------------------------------------------------------------

    def run(
        self, group_id: str, action: Callable[[], A | Awaitable[A]], refused: Callable[[ErrorCode], A]
    ) -> A | Awaitable[A]:
        """Run `action` once the log is ready; `refused` makes the response if the disk fails."""
        if group_id in self._loading:
            return refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

        def unavailable(error: StorageError) -> A:
            self._lasting_errors.log(logger, f"group {group_id!r}", error)
            return refused(ErrorCode.COORDINATOR_NOT_AVAILABLE)

        return self._offsets.run(group_id, action, unavailable)

    def wait(
        self,
        group_id: str,
        action: Callable[[Reply[A]], None],
        shape: Callable[[A], B],
        refused: Callable[[ErrorCode], A],
    ) -> B | Awaitable[B]:
        """As `run`, for actions that reply once the group is ready; `shape` makes the response."""
        reply = Reply[A]()

        def begin() -> B | Awaitable[B]:
            action(reply)
            return reply.get(shape)

        return self.run(group_id, begin, lambda code: shape(refused(code)))

    def load_fault(self, group_id: str) -> ErrorCode:
        """Return COORDINATOR_LOAD_IN_PROGRESS while a group is being loaded, else NONE."""
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if group_id in self._loading else ErrorCode.NONE

    # --- the classic protocol: call within `run` ----------------------------------------------------------------------

    def join(self, asked: Join, reply: Reply[Joined]) -> None:
        """JoinGroup.

        Raises: StorageError.
        """
        names = (asked.instance_id, asked.client.client_id, asked.protocol_type, *(name for name, _ in asked.protocols))
        if too_long(*names):
            reply.give(Joined(ErrorCode.INVALID_REQUEST, asked.member_id))
            return
        if not asked.group_id or too_long(asked.group_id):
            reply.give(Joined(ErrorCode.INVALID_GROUP_ID, asked.member_id))
            return
        least = self._configs.integer("group.min.session.timeout.ms")
        most = self._configs.integer("group.max.session.timeout.ms")
        code = classic_decisions.timeout_fault(asked, least, most)
        if code is not ErrorCode.NONE:
            reply.give(Joined(code, asked.member_id))
            return
        group = self._groups.get(asked.group_id)
        if isinstance(group, ConsumerGroup):
            if group.members:
                reply.give(Joined(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, asked.member_id))
                return
            self._end(group)
            group = None
        if group is None:
            if asked.member_id:
                reply.give(Joined(ErrorCode.UNKNOWN_MEMBER_ID, asked.member_id))
                return
            group = self._groups[asked.group_id] = ClassicGroup(asked.group_id, wall_ms())
        self._classic.join(group, asked, reply)
        self._forget_if_unused(group)

    def sync(self, asked: Sync, reply: Reply[Synced]) -> None:
        """SyncGroup."""
        group = self._groups.get(asked.group_id)
        if isinstance(group, ClassicGroup):
            self._classic.sync(group, asked, reply)
        else:
            reply.give(Synced(ErrorCode.UNKNOWN_MEMBER_ID if asked.group_id else ErrorCode.INVALID_GROUP_ID))

    def heartbeat(self, group_id: str, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        """Heartbeat."""
        group = self._groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            return ErrorCode.UNKNOWN_MEMBER_ID if group_id else ErrorCode.INVALID_GROUP_ID
        return self._classic.heartbeat(group, member_id, instance_id, generation)

    def leave(self, group_id: str, leavers: Sequence[Leaver]) -> list[ErrorCode]:
        """LeaveGroup, one code for each.

        Raises: StorageError.
        """
        group = self._groups.get(group_id)
        if group is None:
            return [ErrorCode.UNKNOWN_MEMBER_ID] * len(leavers)
        if isinstance(group, ConsumerGroup):
            return [self._remove_member(group, one) for one in leavers]
        codes = self._classic.leave(group, leavers)
        self._forget_if_unused(group)
        return codes

    def _remove_member(self, group: ConsumerGroup, leaver: Leaver) -> ErrorCode:
        """Remove a member of the consumer protocol for a tool."""
        member_id = leaver.member_id or group.static.get(leaver.instance_id or "", "")
        if leaver.instance_id is not None and group.static.get(leaver.instance_id, member_id) != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
        if member_id not in group.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        self._consumer.remove(group, member_id)
        return ErrorCode.NONE

    # --- the consumer protocol: call within `run` ---------------------------------------------------------------------

    def consumer_heartbeat(self, heartbeat: Heartbeat) -> HeartbeatResult:
        """ConsumerGroupHeartbeat.

        Raises: StorageError.
        """
        fault = consumer_decisions.request_fault(heartbeat)
        if fault is not None:
            return HeartbeatResult(fault.code, fault.message)
        group = self._groups.get(heartbeat.group_id)
        if isinstance(group, ClassicGroup):
            if group.state is not ClassicState.EMPTY or group.pending:
                return HeartbeatResult(
                    ErrorCode.GROUP_ID_NOT_FOUND, f"Group {heartbeat.group_id} is not a consumer group."
                )
            if heartbeat.epoch == JOINING:
                self._end(group)
            group = None
        if group is None:
            if heartbeat.epoch != JOINING:
                return HeartbeatResult(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {heartbeat.group_id} not found.")
            result = self._consumer.heartbeat(fresh := ConsumerGroup(heartbeat.group_id), heartbeat)
            if result.code is ErrorCode.NONE:
                self._groups[heartbeat.group_id] = fresh
            return result
        return self._consumer.heartbeat(group, heartbeat)

    # --- offsets ------------------------------------------------------------------------------------------------------

    def commit_fault(self, group_id: str, by: Committer, partitions: Iterable[TopicPartition]) -> ErrorCode:
        """Return why the committer may not commit, or NONE; restarts its session timeout."""
        if group_id in self._loading:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        group = self._groups.get(group_id)
        if group is None:
            # Only a tool, or a consumer that assigns its own partitions, creates a group by a commit.
            return ErrorCode.NONE if by.epoch < 0 else ErrorCode.ILLEGAL_GENERATION
        if isinstance(group, ConsumerGroup):
            topics = [(self._topics.get(tp.topic), tp.partition) for tp in partitions]
            parts = [Part(topic.id, index) for topic, index in topics if topic is not None]
            return consumer_decisions.commit_fault(group, by, parts)
        code = classic_decisions.commit_fault(group, by)
        member = group.members.get(by.member_id)
        if code is ErrorCode.NONE and member is not None:
            self._classic.hear(group, member)
        return code

    def fetch_fault(self, group_id: str, member_id: str | None, epoch: int) -> ErrorCode:
        """Return why the member may not fetch committed offsets, or NONE."""
        if group_id in self._loading:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        group = self._groups.get(group_id)
        return (
            consumer_decisions.fetch_fault(group, member_id, epoch)
            if isinstance(group, ConsumerGroup)
            else ErrorCode.NONE
        )

    # --- tools --------------------------------------------------------------------------------------------------------

    def delete(self, group_id: str) -> ErrorCode:
        """DeleteGroups: delete a group without members, and its offsets. Call it within `run`.

        Raises: StorageError.
        """
        group = self.find(group_id)
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        if group.state not in {ClassicState.EMPTY, ConsumerState.EMPTY}:
            return ErrorCode.NON_EMPTY_GROUP
        self._offsets.delete(group_id, list(self._offsets.of_group(group_id)), wall_ms())
        self._end(group)
        return ErrorCode.NONE

    def _end(self, group: Group) -> None:
        """Delete an empty group, in the log as well."""
        if isinstance(group, ConsumerGroup):
            self._append(group.group_id, consumer_records.ends_of_group(group))
            self._consumer.unload(group)
            group.end()
        else:
            if group.generation:
                self._append(group.group_id, [(group_key(group.group_id), None)])
            self._classic.unload(group)
            group.move(ClassicEvent.DELETED, wall_ms())
        self._groups.pop(group.group_id, None)

    def subscribed_topics(self, group_id: str) -> set[str] | None:
        """Return the topics that a group with members reads; None: unknown, it may be any."""
        group = self._groups.get(group_id)
        if group is None or not group.members:
            return set()
        return group.subscribed_topics()

    def expire(self, now_ms: int) -> int:
        """Delete unused offsets older than offsets.retention.minutes, and groups without offsets.

        Return the number of offsets. Raises: StorageError: the rest is left for the next call.
        """
        kept_ms = self._configs.integer("offsets.retention.minutes") * 60_000
        count = 0
        for group_id in self.ids():
            group = self._groups.get(group_id)
            since = _empty_since(group)
            topics = self.subscribed_topics(group_id)
            pending = self._offsets.pending(group_id)
            expired = [
                tp
                for tp, committed in self._offsets.of_group(group_id).items()
                if tp not in pending
                and topics is not None
                and tp.topic not in topics
                and now_ms - max(committed.committed_ms, since) >= kept_ms
            ]
            self._offsets.delete(group_id, expired, now_ms)
            count += len(expired)
            unused = group is not None and not group.members and not self._offsets.of_group(group_id) and not pending
            if unused and group is not None and now_ms - since >= kept_ms and not getattr(group, "pending", None):
                self._end(group)
        return count

    # --- for tests ----------------------------------------------------------------------------------------------------

    def evict(self, group_id: str, member_id: str) -> None:
        """End a member's session now.

        Raises: StorageError. KeyError: the group or member does not exist.
        """
        group = self._groups[group_id]
        group.members[member_id]
        if isinstance(group, ConsumerGroup):
            self._consumer.remove(group, member_id)
        else:
            self._classic.leave(group, [Leaver(member_id, None)])

    def rebalance(self, group_id: str) -> None:
        """Start a rebalance of a group with members, unless one is in progress.

        Raises: StorageError. KeyError: the group does not exist.
        """
        group = self._groups[group_id]
        if isinstance(group, ConsumerGroup):
            row = consumer_records.epoch_row(group_id, group.epoch + 1, group.metadata_hash)
            self._append(group_id, [row])
            group.set_epoch(group.epoch + 1, group.metadata_hash)
        elif group.state in {ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE}:
            self._classic.begin(group)


def _empty_since(group: Group | None) -> int:
    """Return when a group lost its last member (wall clock); -1: it has members or never had."""
    if isinstance(group, ClassicGroup):
        return group.changed_ms if group.state is ClassicState.EMPTY else -1
    return group.emptied_ms if group is not None else -1
