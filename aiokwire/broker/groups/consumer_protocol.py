"""The consumer protocol (KIP-848): heartbeats move a group, and so do deadlines. The broker assigns.

    heartbeat -> the member as it describes itself -> the group's epoch, up where anything changed
              -> the target assignment of that epoch -> the member's next step towards it -> logged -> in force -> told

Everything that a heartbeat changes is one append: all of it happens, or nothing.
"""

from __future__ import annotations

import dataclasses
import hashlib
import logging
from collections.abc import Iterable, Mapping

from aiokwire.broker.groups import consumer_records as records
from aiokwire.broker.groups.assignors import ASSIGNORS, Subscriber
from aiokwire.broker.groups.consumer_decisions import Fault, Heartbeat, HeartbeatResult, member_fault, updated
from aiokwire.broker.groups.consumer_group import (
    JOINING,
    LEAVING_FOR_A_WHILE,
    NOTHING,
    ConsumerGroup,
    ConsumerMember,
    Parts,
    preferred_assignor,
)
from aiokwire.broker.groups.consumer_records import Row
from aiokwire.broker.groups.context import GroupContext
from aiokwire.broker.groups.reconciliation import reconcile
from aiokwire.broker.groups.states import ReconciliationState
from aiokwire.broker.groups.timers import Due, Key
from aiokwire.broker.patterns import Budget, InvalidPattern, Pattern
from aiokwire.clock import wall_ms
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import StorageError

logger = logging.getLogger(__name__)

LOGGED = 200  # characters of a pattern that messages show


class _Draft:
    """What a heartbeat makes of a group, until it is logged."""

    def __init__(self, group: ConsumerGroup) -> None:
        self.group = group
        self.rows: list[Row] = []
        self.epoch = group.epoch
        self.metadata_hash = group.metadata_hash
        self.assignment_epoch = group.assignment_epoch
        self.assignor = group.assignor
        self.target: dict[str, Parts] = {}  # what differs from the group's
        self.replaced: str | None = None  # the id under which a static member was known
        self.regexes = group.regexes


class ConsumerProtocol:
    """Moves groups of the consumer protocol."""

    def __init__(self, context: GroupContext) -> None:
        self._timers = context.timers
        self._context = context
        text = context.configs.text("group.consumer.assignors") or ""
        named = [one.strip() for one in text.split(",")]
        self._default_assignor = next((one for one in named if one in ASSIGNORS), "uniform")

    # --- heartbeats ---------------------------------------------------------------------------------------------------

    def heartbeat(self, group: ConsumerGroup, heartbeat: Heartbeat) -> HeartbeatResult:
        """ConsumerGroupHeartbeat.

        Raises: StorageError: nothing happened.
        """
        fault = (
            member_fault(group, heartbeat)
            or self._size_fault(group, heartbeat)
            or self._pattern_fault(group, heartbeat)
        )
        if fault is not None:
            return HeartbeatResult(fault.code, fault.message)
        if heartbeat.leaves:
            return self._leave(group, heartbeat)
        draft = _Draft(group)
        known, member = self._member_of(draft, heartbeat)
        self._describe(draft, known, member)
        if draft.epoch > draft.assignment_epoch:
            self._retarget(draft, member)
        target = draft.target.get(member.member_id, group.target.get(member.member_id, NOTHING))
        placed = reconcile(
            member,
            target,
            draft.assignment_epoch,
            owned=heartbeat.owned,
            is_taken=lambda part: group.owners.get(part, draft.replaced) not in {draft.replaced, member.member_id},
        )
        if known is None or draft.replaced is not None or placed.placed != member.placed:
            draft.rows.append(records.current_row(group.group_id, placed))
        self._enforce(draft, placed)
        self._set_deadlines(group, member, placed)
        return self._tell(heartbeat, member, placed)

    def _size_fault(self, group: ConsumerGroup, heartbeat: Heartbeat) -> Fault | None:
        most = self._context.configs.integer("group.consumer.max.size")
        if len(group.members) < most or heartbeat.member_id in group.members or heartbeat.instance_id in group.static:
            return None
        return Fault(ErrorCode.GROUP_MAX_SIZE_REACHED, f"the group has {most} members, which is the most")

    def _member_of(self, draft: _Draft, heartbeat: Heartbeat) -> tuple[ConsumerMember | None, ConsumerMember]:
        """The member as it was, None for a new one, and as it describes itself now."""
        group = draft.group
        member_id = heartbeat.member_id or self._context.new_id()
        owner = group.static.get(heartbeat.instance_id or "", member_id)
        known = group.members.get(owner)
        if known is None:
            return None, updated(ConsumerMember(member_id, heartbeat.client), heartbeat)
        if owner != member_id:
            # A static member comes back: what it had was kept for it.
            draft.replaced = owner
            draft.rows += records.ends_of_member(group.group_id, owner)
            draft.target[member_id] = group.target.get(owner, NOTHING)
            draft.rows.append(records.target_row(group.group_id, member_id, draft.target[member_id]))
            known = dataclasses.replace(known, member_id=member_id, epoch=JOINING, previous_epoch=JOINING)
        elif known.epoch == LEAVING_FOR_A_WHILE:
            known = dataclasses.replace(known, epoch=JOINING, previous_epoch=JOINING)
        return known, updated(known, heartbeat)

    def _describe(self, draft: _Draft, known: ConsumerMember | None, member: ConsumerMember) -> None:
        """Log what the member says of itself; raise the group's epoch where that, or the topics, changed."""
        group = draft.group
        changed = known is None or (known.topics, known.regex) != (member.topics, member.regex)
        if known is None or draft.replaced is not None or known.described != member.described:
            # before the other records of the member: they rest on this one
            place = 3 if draft.replaced is not None else 0
            draft.rows.insert(place, records.member_row(group.group_id, member))
        if changed or group.seen_topics != self._context.topics.version:
            members = self._members_with(draft, member)
            self._resolve_patterns(draft, members.values())
            hashed = self._hash_of(draft, members)
            if changed or hashed != draft.metadata_hash or group.epoch == 0:
                draft.epoch, draft.metadata_hash = group.epoch + 1, hashed
                draft.rows.append(records.epoch_row(group.group_id, draft.epoch, hashed))

    def _members_with(self, draft: _Draft, member: ConsumerMember) -> dict[str, ConsumerMember]:
        members = {**draft.group.members, member.member_id: member}
        if draft.replaced is not None:
            del members[draft.replaced]
        return members

    def _resolve_patterns(self, draft: _Draft, members: Iterable[ConsumerMember]) -> None:
        """Find the topics of every pattern, but of those that were matched with the present topics."""
        group, topics = draft.group, self._context.topics
        known = group.regexes if group.seen_topics == topics.version else {}
        budget = Budget()
        found = {
            text: known[text] if text in known else self._topics_matching(group, text, budget)
            for text in dict.fromkeys(one.regex for one in members if one.regex)
        }
        now = wall_ms()
        for pattern in {**group.regexes, **found}:
            if group.regexes.get(pattern) != found.get(pattern):
                row = records.regex_row(group.group_id, pattern, found.get(pattern), topics.version, now)
                draft.rows.append(row)
        draft.regexes = found

    def _topics_matching(self, group: ConsumerGroup, text: str, budget: Budget) -> tuple[str, ...]:
        """The topics of a pattern; those known before, when it cannot be run: it may come from an older log."""
        try:
            return tuple(Pattern(text, budget).select(topic.name for topic in self._context.topics))
        except InvalidPattern as error:
            logger.warning(
                "group %r: the topics of pattern %r stay as they are, it cannot be matched: %s",
                group.group_id,
                text[:LOGGED],
                error,
            )
            return group.regexes.get(text, ())

    def _pattern_fault(self, group: ConsumerGroup, heartbeat: Heartbeat) -> Fault | None:
        if not heartbeat.regex or heartbeat.regex in group.regexes:
            return None
        try:
            Pattern(heartbeat.regex).select(topic.name for topic in self._context.topics)
        except InvalidPattern as error:
            message = f"SubscribedTopicRegex {heartbeat.regex[:LOGGED]!r} is not valid: {error}"
            return Fault(ErrorCode.INVALID_REGULAR_EXPRESSION, message)
        return None

    def _hash_of(self, draft: _Draft, members: Mapping[str, ConsumerMember]) -> int:
        """A number that changes with the topics that are subscribed to: their ids and partitions."""
        names = {name for one in members.values() for name in self._topics_of(draft, one)}
        digest = hashlib.blake2b(digest_size=8)
        for name in sorted(names):
            topic = self._context.topics.get(name)
            if topic is not None:
                digest.update(topic.id + len(topic.partitions).to_bytes(4, "big"))
        return int.from_bytes(digest.digest(), "big", signed=True)

    def _topics_of(self, draft: _Draft, member: ConsumerMember) -> set[str]:
        return {*member.topics, *draft.regexes.get(member.regex or "", ())}

    def _retarget(self, draft: _Draft, member: ConsumerMember) -> None:
        """Compute the target assignment of the draft's epoch."""
        group, topics = draft.group, self._context.topics
        members = self._members_with(draft, member)
        counts: dict[bytes, int] = {}
        subscribers = []
        for one in members.values():
            wanted = [topics.get(name) for name in sorted(self._topics_of(draft, one))]
            ids = {topic.id: len(topic.partitions) for topic in wanted if topic is not None}
            counts.update(ids)
            subscribers.append(Subscriber(one.member_id, one.instance_id, frozenset(ids)))
        last = {**group.target, **draft.target}
        draft.assignor = preferred_assignor(members.values(), self._default_assignor)
        assigned = ASSIGNORS[draft.assignor](subscribers, counts, last)
        for member_id, parts in assigned.items():
            if last.get(member_id) != parts:
                draft.target[member_id] = parts
                draft.rows.append(records.target_row(group.group_id, member_id, parts))
        draft.assignment_epoch = draft.epoch
        draft.rows.append(records.target_epoch_row(group.group_id, draft.epoch))

    def _enforce(self, draft: _Draft, member: ConsumerMember) -> None:
        group = draft.group
        if draft.rows:
            self._context.append(group.group_id, draft.rows)
        if draft.replaced is not None:
            self._cancel(group, draft.replaced)
            group.remove(draft.replaced, wall_ms())
        group.epoch, group.metadata_hash = draft.epoch, draft.metadata_hash
        group.assignment_epoch, group.assignor = draft.assignment_epoch, draft.assignor
        group.target.update(draft.target)
        group.regexes = draft.regexes
        group.seen_topics = self._context.topics.version
        if group.members.get(member.member_id) is not member:
            group.put(member)

    def _tell(self, heartbeat: Heartbeat, before: ConsumerMember, member: ConsumerMember) -> HeartbeatResult:
        news = heartbeat.is_full or before.assigned.keys() != member.assigned.keys() or heartbeat.epoch != before.epoch
        return HeartbeatResult(
            ErrorCode.NONE,
            None,
            member.member_id,
            member.epoch,
            self._context.configs.integer("group.consumer.heartbeat.interval.ms"),
            frozenset(member.assigned) if news else None,
        )

    # --- members that leave or die ------------------------------------------------------------------------------------

    def _leave(self, group: ConsumerGroup, heartbeat: Heartbeat) -> HeartbeatResult:
        member_id = group.static[heartbeat.instance_id] if heartbeat.instance_id is not None else heartbeat.member_id
        if heartbeat.epoch == LEAVING_FOR_A_WHILE:
            # What it has is kept for it until its session ends.
            gone = dataclasses.replace(
                group.members[member_id], epoch=LEAVING_FOR_A_WHILE, state=ReconciliationState.STABLE, revoking={}
            )
            self._context.append(group.group_id, [records.current_row(group.group_id, gone)])
            group.put(gone)
            self._timers.cancel(Key(Due.REVOCATION, group.group_id, member_id))
        else:
            self.remove(group, member_id)
        return HeartbeatResult(ErrorCode.NONE, None, member_id, heartbeat.epoch)

    def remove(self, group: ConsumerGroup, member_id: str) -> None:
        """Let a member go; the others take what it had.

        Raises: StorageError: it stays.
        """
        rows = records.ends_of_member(group.group_id, member_id)
        rows.append(records.epoch_row(group.group_id, group.epoch + 1, group.metadata_hash))
        self._context.append(group.group_id, rows)
        group.remove(member_id, wall_ms())
        group.epoch += 1
        group.seen_topics = -1  # its subscription went with it
        self._cancel(group, member_id)

    def _set_deadlines(self, group: ConsumerGroup, before: ConsumerMember, member: ConsumerMember) -> None:
        self.hear(group, member.member_id)
        key = Key(Due.REVOCATION, group.group_id, member.member_id)
        if member.state is not ReconciliationState.UNREVOKED_PARTITIONS:
            self._timers.cancel(key)
        elif member.placed != before.placed:
            self._timers.set(key, member.rebalance_timeout_ms / 1000)

    def hear(self, group: ConsumerGroup, member_id: str) -> None:
        """A member gave a sign of life."""
        seconds = self._context.configs.integer("group.consumer.session.timeout.ms") / 1000
        self._timers.set(Key(Due.SESSION, group.group_id, member_id), seconds)

    def on_timeout(self, group: ConsumerGroup, key: Key) -> None:
        """A member was not heard of, or did not give up what it must, in time."""
        member = group.members.get(key.member_id)
        if member is None or (
            key.due is Due.REVOCATION and member.state is not ReconciliationState.UNREVOKED_PARTITIONS
        ):
            return
        why = "was not heard of" if key.due is Due.SESSION else "did not give up its partitions"
        logger.info("group %r: member %r %s in time", group.group_id, key.member_id, why)
        try:
            self.remove(group, key.member_id)
        except StorageError as error:
            logger.error("that it left cannot be logged: %s; it is tried again", error)
            self.hear(group, key.member_id)

    def _cancel(self, group: ConsumerGroup, member_id: str) -> None:
        self._timers.cancel(Key(Due.SESSION, group.group_id, member_id))
        self._timers.cancel(Key(Due.REVOCATION, group.group_id, member_id))

    def restored(self, group: ConsumerGroup) -> None:
        """Give the members of a group that was loaded their sessions anew."""
        for member in group.members.values():
            self.hear(group, member.member_id)
            if member.state is ReconciliationState.UNREVOKED_PARTITIONS:
                seconds = max(member.rebalance_timeout_ms, 0) / 1000
                self._timers.set(Key(Due.REVOCATION, group.group_id, member.member_id), seconds)

    def unload(self, group: ConsumerGroup) -> None:
        """Keep no deadline any more: another node goes on."""
        for member_id in group.members:
            self._cancel(group, member_id)
