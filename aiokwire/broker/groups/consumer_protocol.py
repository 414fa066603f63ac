"""The consumer protocol (KIP-848): heartbeats and deadlines change a group. The broker assigns.

    heartbeat -> the member's description -> the group's epoch, raised by any change -> its target
              -> the member's next step towards its target -> logged -> in force -> response

All changes of a heartbeat are one append: all of them take effect, or none.
"""

from __future__ import annotations

import dataclasses
import hashlib
import logging
from collections.abc import Callable, Iterable, Mapping

from aiokwire.broker.groups import consumer_records as records
from aiokwire.broker.groups.assignors import ASSIGNORS, Subscriber
from aiokwire.broker.groups.consumer_decisions import (
    Fault,
    Heartbeat,
    HeartbeatResult,
    member_fault,
    reconcile,
    updated,
)
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
from aiokwire.broker.groups.context import Due, GroupContext, Key
from aiokwire.broker.groups.states import ReconciliationState
from aiokwire.broker.patterns import Budget, InvalidPattern, Pattern
from aiokwire.clock import wall_ms
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import StorageError

logger: logging.Logger = logging.getLogger(__name__)

LOGGED = 200  # characters of a pattern that messages show


class _Draft:
    """The changes of a group by a heartbeat, until they are logged."""

    def __init__(self, group: ConsumerGroup, may_describe: Callable[[str], bool] | None) -> None:
        self.group = group
        self.may_describe = may_describe
        self.rows: list[Row] = []
        self.epoch = group.epoch
        self.metadata_hash = group.metadata_hash
        self.assignment_epoch = group.assignment_epoch
        self.assignor = group.assignor
        self.target: dict[str, Parts] = {}  # the differences from the group's
        self.replaced: str | None = None  # the old id of a returning static member
        self.regexes = group.regexes

    def replace(self, old_id: str, member_id: str) -> None:
        """Give the target of a static member to its new id."""
        self.replaced = old_id
        self.rows.extend(records.ends_of_member(self.group.group_id, old_id))
        self._set_target(member_id, self.group.target.get(old_id, NOTHING))

    def raise_epoch(self, metadata_hash: int) -> None:
        self.epoch, self.metadata_hash = self.group.epoch + 1, metadata_hash
        self.rows.append(records.epoch_row(self.group.group_id, self.epoch, metadata_hash))

    def set_patterns(self, regexes: dict[str, tuple[str, ...]], topics_version: int) -> None:
        now = wall_ms()
        before = self.group.regexes
        for pattern in {**before, **regexes}:
            if before.get(pattern) != regexes.get(pattern):
                topics = regexes.get(pattern)
                self.rows.append(records.regex_row(self.group.group_id, pattern, topics, topics_version, now))
        self.regexes = regexes

    def assign(self, assignor: str, assigned: Mapping[str, Parts]) -> None:
        """Set the target of the draft's epoch."""
        last = {**self.group.target, **self.target}
        for member_id, parts in assigned.items():
            if last.get(member_id) != parts:
                self._set_target(member_id, parts)
        self.assignor, self.assignment_epoch = assignor, self.epoch
        self.rows.append(records.target_epoch_row(self.group.group_id, self.epoch))

    def _set_target(self, member_id: str, parts: Parts) -> None:
        self.target[member_id] = parts
        self.rows.append(records.target_row(self.group.group_id, member_id, parts))


class ConsumerProtocol:
    """Changes groups of the consumer protocol."""

    def __init__(self, context: GroupContext) -> None:
        self._timers = context.timers
        self._context = context
        text = context.configs.text("group.consumer.assignors") or ""
        named = [one.strip() for one in text.split(",")]
        self._default_assignor = next((one for one in named if one in ASSIGNORS), "uniform")

    # --- heartbeats ---------------------------------------------------------------------------------------------------

    def heartbeat(self, group: ConsumerGroup, heartbeat: Heartbeat) -> HeartbeatResult:
        """ConsumerGroupHeartbeat.

        Raises: StorageError: nothing changed.
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
        draft = _Draft(group, heartbeat.may_describe)
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
        return self._result_of(heartbeat, member, placed)

    def _size_fault(self, group: ConsumerGroup, heartbeat: Heartbeat) -> Fault | None:
        most = self._context.configs.integer("group.consumer.max.size")
        if len(group.members) < most or heartbeat.member_id in group.members or heartbeat.instance_id in group.static:
            return None
        return Fault(ErrorCode.GROUP_MAX_SIZE_REACHED, f"the group has its maximum of {most} members")

    def _member_of(self, draft: _Draft, heartbeat: Heartbeat) -> tuple[ConsumerMember | None, ConsumerMember]:
        """Return the member as it was (None for a new one) and with its new description."""
        group = draft.group
        member_id = heartbeat.member_id or self._context.new_id()
        owner = group.static.get(heartbeat.instance_id or "", member_id)
        known = group.members.get(owner)
        if known is None:
            return None, updated(ConsumerMember(member_id, heartbeat.client), heartbeat)
        if owner != member_id:
            draft.replace(owner, member_id)  # a static member returns: its assignment was kept
            known = dataclasses.replace(known, member_id=member_id, epoch=JOINING, previous_epoch=JOINING)
        elif known.epoch == LEAVING_FOR_A_WHILE:
            known = dataclasses.replace(known, epoch=JOINING, previous_epoch=JOINING)
        return known, updated(known, heartbeat)

    def _describe(self, draft: _Draft, known: ConsumerMember | None, member: ConsumerMember) -> None:
        """Log the member's description; raise the epoch if the subscription or topics changed."""
        group = draft.group
        changed = known is None or (known.topics, known.regex) != (member.topics, member.regex)
        if known is None or draft.replaced is not None or known.described != member.described:
            # Before the member's other records, which need this one.
            place = 3 if draft.replaced is not None else 0
            draft.rows.insert(place, records.member_row(group.group_id, member))
        if changed or group.seen_topics != self._context.topics.version:
            members = self._members_with(draft, member)
            self._resolve_patterns(draft, members.values())
            hashed = self._hash_of(draft, members)
            if changed or hashed != draft.metadata_hash or group.epoch == 0:
                draft.raise_epoch(hashed)

    def _members_with(self, draft: _Draft, member: ConsumerMember) -> dict[str, ConsumerMember]:
        members = {**draft.group.members, member.member_id: member}
        if draft.replaced is not None:
            del members[draft.replaced]
        return members

    def _resolve_patterns(self, draft: _Draft, members: Iterable[ConsumerMember]) -> None:
        """Find the topics of every pattern that was not matched with the current topics."""
        group, topics = draft.group, self._context.topics
        known = group.regexes if group.seen_topics == topics.version else {}
        budget = Budget()
        found = {
            text: known[text] if text in known else self._topics_matching(draft, text, budget)
            for text in dict.fromkeys(one.regex for one in members if one.regex)
        }
        draft.set_patterns(found, topics.version)

    def _topics_matching(self, draft: _Draft, text: str, budget: Budget) -> tuple[str, ...]:
        """Return a pattern's topics; the known ones if it (from an older log) cannot be matched.

        Members share a pattern's topics: those that the first one may describe, as in Kafka.
        """
        group = draft.group
        try:
            found = Pattern(text, budget).select(topic.name for topic in self._context.topics)
            return tuple(name for name in found if draft.may_describe is None or draft.may_describe(name))
        except InvalidPattern as error:
            logger.warning(
                "group %r: cannot evaluate pattern %r, keeping its current topics: %s",
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
        """Return a hash of the subscribed topics: their ids and partition counts."""
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
        assignor = preferred_assignor(members.values(), self._default_assignor)
        draft.assign(assignor, ASSIGNORS[assignor](subscribers, counts, last))

    def _enforce(self, draft: _Draft, member: ConsumerMember) -> None:
        group = draft.group
        if draft.rows:
            self._context.append(group.group_id, draft.rows)
        if draft.replaced is not None:
            self._cancel(group, draft.replaced)
            group.remove(draft.replaced, wall_ms())
        group.set_epoch(draft.epoch, draft.metadata_hash)
        group.set_target_epoch(draft.assignment_epoch, draft.assignor)
        group.target.update(draft.target)
        group.set_patterns(draft.regexes, self._context.topics.version)
        if group.members.get(member.member_id) is not member:
            group.put(member)

    def _result_of(self, heartbeat: Heartbeat, before: ConsumerMember, member: ConsumerMember) -> HeartbeatResult:
        news = heartbeat.is_full or before.assigned.keys() != member.assigned.keys() or heartbeat.epoch != before.epoch
        return HeartbeatResult(
            ErrorCode.NONE,
            None,
            member.member_id,
            member.epoch,
            self._context.configs.integer("group.consumer.heartbeat.interval.ms"),
            frozenset(member.assigned) if news else None,
        )

    # --- leaving and timeouts -----------------------------------------------------------------------------------------

    def _leave(self, group: ConsumerGroup, heartbeat: Heartbeat) -> HeartbeatResult:
        member_id = group.static[heartbeat.instance_id] if heartbeat.instance_id is not None else heartbeat.member_id
        if heartbeat.epoch == LEAVING_FOR_A_WHILE:
            # Its assignment is kept until its session ends.
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
        """Remove a member; the others take over its partitions.

        Raises: StorageError: the member stays.
        """
        rows = records.ends_of_member(group.group_id, member_id)
        rows.append(records.epoch_row(group.group_id, group.epoch + 1, group.metadata_hash))
        self._context.append(group.group_id, rows)
        group.remove(member_id, wall_ms())
        group.set_epoch(group.epoch + 1, group.metadata_hash)
        self._cancel(group, member_id)

    def _set_deadlines(self, group: ConsumerGroup, before: ConsumerMember, member: ConsumerMember) -> None:
        self.hear(group, member.member_id)
        key = Key(Due.REVOCATION, group.group_id, member.member_id)
        if member.state is not ReconciliationState.UNREVOKED_PARTITIONS:
            self._timers.cancel(key)
        elif member.placed != before.placed:
            self._timers.set(key, member.rebalance_timeout_ms)

    def hear(self, group: ConsumerGroup, member_id: str) -> None:
        """Restart a member's session timeout."""
        timeout_ms = self._context.configs.integer("group.consumer.session.timeout.ms")
        self._timers.set(Key(Due.SESSION, group.group_id, member_id), timeout_ms)

    def on_timeout(self, group: ConsumerGroup, key: Key) -> None:
        """Remove a member that sent no heartbeat, or did not revoke its partitions, in time."""
        member = group.members.get(key.member_id)
        if member is None or (
            key.due is Due.REVOCATION and member.state is not ReconciliationState.UNREVOKED_PARTITIONS
        ):
            return
        why = "sent no heartbeat" if key.due is Due.SESSION else "did not revoke its partitions"
        logger.info("group %r: member %r %s in time", group.group_id, key.member_id, why)
        try:
            self.remove(group, key.member_id)
        except StorageError as error:
            logger.error(
                "group %r: cannot store the removal of member %r: %s; retrying", group.group_id, key.member_id, error
            )
            self.hear(group, key.member_id)

    def _cancel(self, group: ConsumerGroup, member_id: str) -> None:
        self._timers.cancel(Key(Due.SESSION, group.group_id, member_id))
        self._timers.cancel(Key(Due.REVOCATION, group.group_id, member_id))

    def restored(self, group: ConsumerGroup) -> None:
        """Start the sessions of a loaded group's members."""
        for member in group.members.values():
            self.hear(group, member.member_id)
            if member.state is ReconciliationState.UNREVOKED_PARTITIONS:
                timeout_ms = max(member.rebalance_timeout_ms, 0)
                self._timers.set(Key(Due.REVOCATION, group.group_id, member.member_id), timeout_ms)

    def unload(self, group: ConsumerGroup) -> None:
        """Cancel the group's deadlines: another node takes over."""
        for member_id in group.members:
            self._cancel(group, member_id)
