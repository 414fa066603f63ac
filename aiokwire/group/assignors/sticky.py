"""Sticky: even shares, and partitions stay where they are as far as that allows. There are two: with the eager one all
members give everything up before they join, with the cooperative one (KIP-429) only what moves.

Both speak as Java's do, so that groups may be mixed; `balancing` decides.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Final

from aiokwire.errors import ProtocolViolation
from aiokwire.group.assignors.balancing import balance
from aiokwire.group.assignors.base import Assignment, Members, Partitions, in_order
from aiokwire.group.assignors.sticky_format import (
    Memory,
    decode_generation,
    decode_memory,
    encode_generation,
    encode_memory,
)
from aiokwire.group.subscription_format import NO_GENERATION, MemberSubscription
from aiokwire.types import TopicPartition

logger = logging.getLogger(__name__)


class StickyAssignor:
    """Eager. Each member says in its user data what it had, and in which generation."""

    name = "sticky"
    cooperative = False

    def __init__(self) -> None:
        self._last: Memory | None = None

    def user_data(self, topics: Iterable[str]) -> bytes:
        """What this member had last, if it had anything."""
        return b"" if self._last is None else encode_memory(self._last)

    def on_assignment(self, partitions: Iterable[TopicPartition], generation: int) -> None:
        """Kept for the next join."""
        self._last = Memory(tuple(partitions), generation)

    def assign(self, members: Members, partitions: Partitions) -> Assignment:
        """Even, and with few moves."""
        return _assign(members, partitions, _owners({member_id: _told(one) for member_id, one in members.items()}))


class CooperativeStickyAssignor:
    """Members keep what they own while the group rebalances; what moves is first taken, and given in the next round."""

    name = "cooperative-sticky"
    cooperative = True

    def __init__(self) -> None:
        self._generation = NO_GENERATION

    def user_data(self, topics: Iterable[str]) -> bytes:
        """The generation, for leaders that do not look for it in the subscription (before version 2)."""
        return encode_generation(self._generation)

    def on_assignment(self, partitions: Iterable[TopicPartition], generation: int) -> None:
        """The generation is told to the next leader."""
        self._generation = generation

    def assign(self, members: Members, partitions: Partitions) -> Assignment:
        """Even, and with few moves; without what somebody else still owns."""
        had = {member_id: _owned(one) for member_id, one in members.items()}
        owners = _owners(had)
        assignment = _assign(members, partitions, owners)
        claims: dict[TopicPartition, set[str]] = {}
        for member_id, memory in had.items():
            for tp in memory.partitions:
                claims.setdefault(tp, set()).add(member_id)
        for member_id, mine in assignment.items():
            mine[:] = [tp for tp in mine if owners.get(tp) == member_id or not claims.get(tp, _NOBODY) - {member_id}]
        return assignment


_NOBODY: Final[frozenset[str]] = frozenset()


def _told(member: MemberSubscription) -> Memory:
    if not member.user_data:
        return Memory()
    try:
        return decode_memory(member.user_data)
    except ProtocolViolation as error:
        logger.warning("member %r says in an unknown way what it had, so it has no claim: %s", member.member_id, error)
        return Memory()


def _owned(member: MemberSubscription) -> Memory:
    generation = member.generation
    if generation == NO_GENERATION and member.user_data:
        generation = decode_generation(member.user_data)
    return Memory(member.owned, generation)


def _owners(had: Mapping[str, Memory]) -> dict[TopicPartition, str]:
    """Whose each partition is: of those that say so, the one in the newest generation; nobody's when there are two."""
    newest: dict[TopicPartition, tuple[int, str | None]] = {}
    for member_id, memory in had.items():
        for tp in memory.partitions:
            generation, _ = newest.get(tp, (NO_GENERATION - 1, None))
            if memory.generation > generation:
                newest[tp] = (memory.generation, member_id)
            elif memory.generation == generation:
                logger.warning("more than one member says that it had %s in generation %d", tp, generation)
                newest[tp] = (generation, None)
    return {tp: member_id for tp, (_, member_id) in newest.items() if member_id is not None}


def _assign(members: Members, partitions: Partitions, owners: Mapping[TopicPartition, str]) -> Assignment:
    row = in_order(members)
    return balance(
        {one.member_id: one.topics for one in row}, partitions, owners, {one.member_id: one.rack_id for one in row}
    )
