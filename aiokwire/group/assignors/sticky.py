"""Sticky: even shares, and partitions stay with their members as far as possible. With the eager
assignor members revoke all partitions before they join, with the cooperative one (KIP-429) only
those that move.

Both use Java's user data, so that groups may be mixed. `balancing` computes the assignment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from aiokwire.errors import ProtocolViolation
from aiokwire.group.assignors.balancing import balance
from aiokwire.group.assignors.base import Assignment, Members, Partitions, in_order
from aiokwire.group.subscription_format import NO_GENERATION, MemberSubscription, by_topic
from aiokwire.log_fields import FieldLogger, get_logger
from aiokwire.protocol import PlainReader, PlainWriter
from aiokwire.types import TopicPartition

logger: FieldLogger = get_logger(__name__)


class Memory(NamedTuple):
    """A member's last assignment and its generation (-1: unknown)."""

    partitions: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION


class StickyAssignor:
    """The eager sticky assignor. User data: the member's last assignment and its generation."""

    name = "sticky"
    cooperative = False

    def __init__(self) -> None:
        self._last: Memory | None = None

    def user_data(self, topics: Iterable[str]) -> bytes:
        """Return this member's last assignment, if it has one."""
        return b"" if self._last is None else encode_memory(self._last)

    def on_assignment(self, partitions: Iterable[TopicPartition], generation: int) -> None:
        """Keep the assignment for the next join."""
        self._last = Memory(tuple(partitions), generation)

    def assign(self, members: Members, partitions: Partitions) -> Assignment:
        """Return an even assignment with few moves."""
        had = {member_id: _remembered(member) for member_id, member in members.items()}
        return _assign(members, partitions, _owners(had))


class CooperativeStickyAssignor:
    """The cooperative sticky assignor: members keep their partitions while the group rebalances. A
    partition that moves is revoked in one rebalance and assigned in the next."""

    name = "cooperative-sticky"
    cooperative = True

    def __init__(self) -> None:
        self._generation = NO_GENERATION

    def user_data(self, topics: Iterable[str]) -> bytes:
        """Return the generation, for leaders that do not read it from the subscription (v0, v1)."""
        return encode_generation(self._generation)

    def on_assignment(self, partitions: Iterable[TopicPartition], generation: int) -> None:
        """Keep the generation for the next join."""
        self._generation = generation

    def assign(self, members: Members, partitions: Partitions) -> Assignment:
        """Return an even assignment with few moves, without partitions that others still own."""
        had = {member_id: _owned(member) for member_id, member in members.items()}
        owners = _owners(had)
        assignment = _assign(members, partitions, owners)
        claims: dict[TopicPartition, set[str]] = {}
        for member_id, memory in had.items():
            for tp in memory.partitions:
                claims.setdefault(tp, set()).add(member_id)
        for member_id, mine in assignment.items():
            mine[:] = [tp for tp in mine if owners.get(tp) == member_id or not claims.get(tp, _NONE) - {member_id}]
        return assignment


_NONE: Final[frozenset[str]] = frozenset()


def _remembered(member: MemberSubscription) -> Memory:
    if not member.user_data:
        return Memory()
    try:
        return decode_memory(member.user_data)
    except ProtocolViolation as error:
        logger.warning(
            "member %r reports its previous partitions in an unknown format; ignoring them: %s", member.member_id, error
        )
        return Memory()


def _owned(member: MemberSubscription) -> Memory:
    generation = member.generation
    if generation == NO_GENERATION and member.user_data:
        generation = decode_generation(member.user_data)
    return Memory(member.owned, generation)


def _owners(had: Mapping[str, Memory]) -> dict[TopicPartition, str]:
    """Return the owner of each partition: the only claimant of the newest generation."""
    newest: dict[TopicPartition, tuple[int, str | None]] = {}
    for member_id, memory in had.items():
        for tp in memory.partitions:
            generation, _ = newest.get(tp, (NO_GENERATION - 1, None))
            if memory.generation > generation:
                newest[tp] = (memory.generation, member_id)
            elif memory.generation == generation:
                logger.warning("more than one member claims %s in generation %d", tp, generation)
                newest[tp] = (generation, None)
    return {tp: member_id for tp, (_, member_id) in newest.items() if member_id is not None}


def _assign(members: Members, partitions: Partitions, owners: Mapping[TopicPartition, str]) -> Assignment:
    row = in_order(members)
    return balance(
        {one.member_id: one.topics for one in row}, partitions, owners, {one.member_id: one.rack_id for one in row}
    )


# The user data in Java's formats. Eager: the last assignment, and from version 1 on the generation.
# Cooperative: the generation.


def encode_memory(memory: Memory) -> bytes:
    """Encode the eager assignor's user data, version 1."""
    topics = by_topic(memory.partitions)
    out = PlainWriter()
    out.array_length(len(topics))
    for topic, numbers in topics.items():
        out.string(topic)
        out.int32s(numbers)
    out.int32(memory.generation)
    return out.getvalue()


def decode_memory(data: bytes) -> Memory:
    """Decode the eager assignor's user data, in either version; version 0 has no generation.

    Raises: ProtocolViolation: the bytes are not such data.
    """
    src = PlainReader(data)
    found: list[TopicPartition] = []
    for _ in range(src.array_length()):
        topic = src.string()
        found += (TopicPartition(topic, number) for number in src.int32s())
    try:
        generation = src.int32()
    except ProtocolViolation:
        generation = NO_GENERATION
    return Memory(tuple(found), generation)


def encode_generation(generation: int) -> bytes:
    """Encode the cooperative assignor's user data."""
    out = PlainWriter()
    out.int32(generation)
    return out.getvalue()


def decode_generation(data: bytes) -> int:
    """Decode the cooperative assignor's user data; other bytes mean no generation, as in Java."""
    try:
        return PlainReader(data).int32()
    except ProtocolViolation:
        return NO_GENERATION
