"""The classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup and deadlines change a group.

    join -> PreparingRebalance, until all members joined or the rebalance timeout ends
         -> every member gets a response, the leader all subscriptions -> CompletingRebalance
    sync of the leader -> logged -> every member receives its assignment -> Stable

Follows Java's GroupMetadataManager, KIP-62, KIP-345 (static), KIP-394 (member ids first), KIP-814.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from aiokwire.broker.groups import classic_decisions as decisions
from aiokwire.broker.groups.classic_decisions import Rejoin
from aiokwire.broker.groups.classic_group import ClassicGroup, ClassicMember
from aiokwire.broker.groups.classic_records import encode_group, group_key
from aiokwire.broker.groups.context import Due, GroupContext, Key
from aiokwire.broker.groups.requests import Join, Joined, Leaver, Reply, Sync, Synced
from aiokwire.broker.groups.states import ClassicEvent, ClassicState
from aiokwire.clock import wall_ms
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import StorageError

logger: logging.Logger = logging.getLogger(__name__)

NEW_MEMBER_TIMEOUT_MS = 300_000  # that a member may wait in its first join (a constant in Java, too)
LEAST_WAIT_MS = 1000  # between two checks for static members that have not returned
_REBALANCES_FROM = frozenset({ClassicState.EMPTY, ClassicState.COMPLETING_REBALANCE, ClassicState.STABLE})


class ClassicProtocol:
    """Changes groups of the classic protocol."""

    def __init__(self, context: GroupContext) -> None:
        self._timers = context.timers
        self._context = context

    # --- join ---------------------------------------------------------------------------------------------------------

    def join(self, group: ClassicGroup, asked: Join, reply: Reply[Joined]) -> None:
        """JoinGroup; the reply follows when the rebalance is over.

        Raises: StorageError.
        """
        configs = self._context.configs
        if not decisions.has_room(group, asked.member_id, configs.integer("group.max.size")):
            if asked.member_id in group.members:
                self._remove(group, group.members[asked.member_id])
            reply.give(Joined(ErrorCode.GROUP_MAX_SIZE_REACHED))
            return
        code = decisions.join_fault(group, asked)
        if code is not ErrorCode.NONE:
            reply.give(Joined(code, asked.member_id))
        elif asked.member_id in group.members:
            self._rejoin(group, group.members[asked.member_id], asked, reply)
        elif asked.member_id in group.pending:
            self._timers.cancel(Key(Due.PENDING, group.group_id, asked.member_id))
            self._add(group, asked.member_id, asked, reply)
        else:
            self._join_as_new(group, asked, reply)

    def _join_as_new(self, group: ClassicGroup, asked: Join, reply: Reply[Joined]) -> None:
        member_id = f"{asked.instance_id or asked.client.client_id}-{self._context.new_id()}"
        if asked.instance_id in group.static:
            self._replace_static(group, member_id, asked, reply)
        elif asked.instance_id is None and asked.needs_known_id:
            group.pending[member_id] = None
            self._timers.set(Key(Due.PENDING, group.group_id, member_id), asked.session_timeout_ms)
            reply.give(Joined(ErrorCode.MEMBER_ID_REQUIRED, member_id))
        else:
            self._add(group, member_id, asked, reply)

    def _add(self, group: ClassicGroup, member_id: str, asked: Join, reply: Reply[Joined]) -> None:
        member = ClassicMember(
            member_id,
            asked.instance_id,
            asked.client,
            asked.protocols,
            session_timeout_ms=asked.session_timeout_ms,
            rebalance_timeout_ms=asked.rebalance_timeout_ms,
            is_new=True,
        )
        member.wait_join(reply)
        group.add(member, asked.protocol_type)
        self._timers.set(Key(Due.SESSION, group.group_id, member_id), NEW_MEMBER_TIMEOUT_MS)
        self._rebalance(group)

    def _rejoin(self, group: ClassicGroup, member: ClassicMember, asked: Join, reply: Reply[Joined]) -> None:
        plan = decisions.plan_rejoin(group, member, asked)
        if plan is Rejoin.REBALANCE:
            self._update(member, asked, reply)
            self._rebalance(group)
        elif plan is Rejoin.REPEAT:
            reply.give(group.joined(member))
            self.hear(group, member)
        else:
            reply.give(Joined(ErrorCode.UNKNOWN_MEMBER_ID, asked.member_id))

    def _update(self, member: ClassicMember, asked: Join, reply: Reply[Joined] | None) -> None:
        if reply is not None and member.joining is not reply:
            # The same member on a new connection: no client reads the old response.
            member.answer_join(Joined(ErrorCode.UNKNOWN_MEMBER_ID, member.member_id))
        member.describe(asked)
        member.wait_join(reply)

    def _replace_static(self, group: ClassicGroup, member_id: str, asked: Join, reply: Reply[Joined]) -> None:
        """Replace an instance's id; no rebalance of a stable group if its protocols allow that."""
        assert asked.instance_id is not None
        leader, old_id = group.leader, group.static[asked.instance_id]
        self._timers.cancel(Key(Due.SESSION, group.group_id, old_id))
        member = group.replace_static(asked.instance_id, member_id)
        self._update(member, asked, None)
        self.hear(group, member)
        if group.state is not ClassicState.STABLE or group.select_protocol() != group.protocol:
            member.wait_join(reply)
            self._rebalance(group)
            return
        self._log(group)
        if asked.may_skip_assignment:
            reply.give(group.joined(member, skip_assignment=member_id == group.leader))
        else:
            # A member that knows it is the leader would assign again, for a generation that has its assignment.
            reply.give(group.joined(member)._replace(leader=leader or "", members=()))

    # --- rebalance ----------------------------------------------------------------------------------------------------

    def _rebalance(self, group: ClassicGroup) -> None:
        """Start a rebalance, or complete the current one if all members joined."""
        if group.state in _REBALANCES_FROM:
            self.begin(group)
        else:
            self._complete_if_all_joined(group)

    def begin(self, group: ClassicGroup) -> None:
        """Start a rebalance: every member must rejoin."""
        if group.state is ClassicState.COMPLETING_REBALANCE:
            for member in group.members.values():
                member.assign(b"")
                member.answer_sync(Synced(ErrorCode.REBALANCE_IN_PROGRESS))
        self._timers.cancel(Key(Due.SYNC, group.group_id))
        initial = group.state is ClassicState.EMPTY
        group.move(ClassicEvent.REBALANCE, wall_ms())
        group.unsynced.clear()
        group.allow_initial_wait(initial)
        if initial:
            self._wait_for_first_members(group)
            return
        self._complete_if_all_joined(group)
        if group.state is ClassicState.PREPARING_REBALANCE:
            self._timers.set(Key(Due.JOIN, group.group_id), group.rebalance_timeout_ms)

    def _wait_for_first_members(self, group: ClassicGroup) -> None:
        assert group.initial_ms is not None
        delay_ms = min(max(self._context.configs.integer("group.initial.rebalance.delay.ms"), 0), group.initial_ms)
        group.begin_initial_wait(delay_ms)
        self._timers.set(Key(Due.JOIN, group.group_id), delay_ms)

    def _complete_if_all_joined(self, group: ClassicGroup) -> None:
        if group.state is ClassicState.PREPARING_REBALANCE and group.initial_ms is None and group.all_joined:
            self.complete_join(group)

    def on_join_timeout(self, group: ClassicGroup) -> None:
        """Complete the join, unless a new group waits for more members."""
        if group.state is not ClassicState.PREPARING_REBALANCE:
            return
        delay_ms = self._context.configs.integer("group.initial.rebalance.delay.ms")
        if group.initial_ms and group.grew and delay_ms > 0:
            self._wait_for_first_members(group)
        else:
            self.complete_join(group)

    def complete_join(self, group: ClassicGroup) -> None:
        """Start the next generation with the members that joined and with all static ones."""
        self._timers.cancel(Key(Due.JOIN, group.group_id))
        for member in list(group.members.values()):
            if member.joining is None and member.instance_id is None:
                self._drop(group, member)
        if group.members and not group.elect():
            # Only static members, none of which has returned: they have time until their sessions end.
            self._timers.set(Key(Due.JOIN, group.group_id), max(group.rebalance_timeout_ms, LEAST_WAIT_MS))
            return
        group.begin_generation()
        if not group.members:
            group.move(ClassicEvent.ABANDONED, wall_ms())
            self._log_if_possible(group)
            return
        group.move(ClassicEvent.JOINED, wall_ms())
        for member in group.members.values():
            member.end_first_join()
            self.hear(group, member)
            member.answer_join(group.joined(member))
        self._timers.set(Key(Due.SYNC, group.group_id), group.rebalance_timeout_ms)

    # --- sync ---------------------------------------------------------------------------------------------------------

    def sync(self, group: ClassicGroup, asked: Sync, reply: Reply[Synced]) -> None:
        """SyncGroup; the reply follows when the leader has sent the assignment."""
        code = decisions.sync_fault(group, asked)
        if code is not ErrorCode.NONE:
            reply.give(Synced(code))
            return
        member = group.members[asked.member_id]
        group.unsynced.pop(member.member_id, None)
        self.hear(group, member)
        if group.state is ClassicState.STABLE:
            reply.give(group.synced(member))
        else:
            member.answer_sync(Synced(ErrorCode.UNKNOWN_MEMBER_ID))
            member.wait_sync(reply)
            if member.member_id == group.leader:
                self._assign(group, asked.assignments)
        if not group.unsynced:
            self._timers.cancel(Key(Due.SYNC, group.group_id))

    def _assign(self, group: ClassicGroup, assignments: dict[str, bytes]) -> None:
        for member in group.members.values():
            member.assign(assignments.get(member.member_id, b""))
        try:
            self._log(group)
        except StorageError as error:
            logger.error("group %r: cannot store the assignment: %s", group.group_id, error)
            for member in group.members.values():
                member.answer_sync(Synced(ErrorCode.COORDINATOR_NOT_AVAILABLE))
            self.begin(group)
            return
        group.move(ClassicEvent.SYNCED, wall_ms())
        for member in group.members.values():
            if member.syncing is not None:
                self.hear(group, member)
                member.answer_sync(group.synced(member))

    def on_sync_timeout(self, group: ClassicGroup) -> None:
        """Remove the members that sent no SyncGroup in time."""
        if group.state not in {ClassicState.COMPLETING_REBALANCE, ClassicState.STABLE} or not group.unsynced:
            return
        for member_id in list(group.unsynced):
            self._drop(group, group.members[member_id])
        self._rebalance(group)

    # --- heartbeats, leaving, timeouts --------------------------------------------------------------------------------

    def heartbeat(self, group: ClassicGroup, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        """Heartbeat."""
        code = decisions.heartbeat_fault(group, member_id, instance_id, generation)
        if code in {ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS}:
            self.hear(group, group.members[member_id])
        return code

    def hear(self, group: ClassicGroup, member: ClassicMember) -> None:
        """Restart a member's session timeout."""
        self._timers.set(Key(Due.SESSION, group.group_id, member.member_id), member.session_timeout_ms)

    def leave(self, group: ClassicGroup, leavers: Sequence[Leaver]) -> list[ErrorCode]:
        """LeaveGroup, one code for each. Tools name a static member by its instance only."""
        codes = []
        changed = False
        for one in leavers:
            member_id = one.member_id
            if not member_id and one.instance_id is not None:
                member_id = group.static.get(one.instance_id, "")
            if member_id in group.pending:
                self._forget_pending(group, member_id)
                codes.append(ErrorCode.NONE)
                changed = True
                continue
            code = decisions.member_fault(group, member_id, one.instance_id)
            if code is ErrorCode.NONE:
                self._drop(group, group.members[member_id])
                changed = True
            codes.append(code)
        if changed:
            self._after_loss(group)
        return codes

    def on_session_timeout(self, group: ClassicGroup, member_id: str) -> None:
        """Remove a member that sent no heartbeat within its session timeout."""
        member = group.members.get(member_id)
        if member is None:
            return
        if not member.is_new and (member.joining is not None or member.syncing is not None):
            self.hear(group, member)  # the member waits for the group
            return
        logger.info("group %r: member %r sent no heartbeat in time; removed", group.group_id, member_id)
        self._remove(group, member)

    def on_pending_timeout(self, group: ClassicGroup, member_id: str) -> None:
        """Remove an id that was sent with MEMBER_ID_REQUIRED and not used."""
        if member_id in group.pending:
            self._forget_pending(group, member_id)
            self._after_loss(group)

    def _forget_pending(self, group: ClassicGroup, member_id: str) -> None:
        del group.pending[member_id]
        self._timers.cancel(Key(Due.PENDING, group.group_id, member_id))

    def _remove(self, group: ClassicGroup, member: ClassicMember) -> None:
        self._drop(group, member)
        self._after_loss(group)

    def _drop(self, group: ClassicGroup, member: ClassicMember) -> None:
        self._timers.cancel(Key(Due.SESSION, group.group_id, member.member_id))
        group.remove(member.member_id)

    def _after_loss(self, group: ClassicGroup) -> None:
        if group.state in {ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE}:
            self.begin(group)
        else:
            self._complete_if_all_joined(group)

    # --- the log ------------------------------------------------------------------------------------------------------

    def _log(self, group: ClassicGroup) -> None:
        self._context.append(group.group_id, [(group_key(group.group_id), encode_group(group))])

    def _log_if_possible(self, group: ClassicGroup) -> None:
        try:
            self._log(group)
        except StorageError as error:
            # After a restart the group has members that do not return: they time out.
            logger.error("group %r: cannot store the empty group: %s", group.group_id, error)

    def restored(self, group: ClassicGroup) -> None:
        """Start the sessions of a loaded group's members."""
        for member in group.members.values():
            self.hear(group, member)

    def unload(self, group: ClassicGroup) -> None:
        """Move the group to another node: waiting members get NOT_COORDINATOR, deadlines end."""
        self._timers.cancel(Key(Due.JOIN, group.group_id))
        self._timers.cancel(Key(Due.SYNC, group.group_id))
        for member_id in group.pending:
            self._timers.cancel(Key(Due.PENDING, group.group_id, member_id))
        for member in group.members.values():
            self._timers.cancel(Key(Due.SESSION, group.group_id, member.member_id))
            member.answer_join(Joined(ErrorCode.NOT_COORDINATOR, member.member_id))
            member.answer_sync(Synced(ErrorCode.NOT_COORDINATOR))
