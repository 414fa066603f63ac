"""The assignors of the broker (KIP-848): pure functions from members and topics to an assignment.

`uniform` assigns the same number of partitions to each member, give or take one, and moves as few
as possible. `range` assigns each member consecutive partitions of every topic.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from typing import NamedTuple

from aiokwire.broker.groups.consumer_group import NOTHING, Part, Parts


class Subscriber(NamedTuple):
    """A member and its subscription."""

    member_id: str
    instance_id: str | None
    topics: frozenset[bytes]  # ids


Assignment = dict[str, Parts]
# members, partitions by topic id, the last target
Assignor = Callable[[list[Subscriber], Mapping[bytes, int], Mapping[str, Parts]], Assignment]


def assign_range(members: list[Subscriber], topics: Mapping[bytes, int], last: Mapping[str, Parts]) -> Assignment:
    """Assign consecutive partitions; topics of the same size are distributed in the same way."""
    given: dict[str, set[Part]] = {member.member_id: set() for member in members}
    # Static members keep their place whatever their ids are.
    row = sorted(members, key=lambda one: (one.instance_id is None, one.instance_id or one.member_id))
    for topic_id, count in topics.items():
        takers = [one.member_id for one in row if topic_id in one.topics]
        if not takers:
            continue
        share, extra = divmod(count, len(takers))
        start = 0
        for place, member_id in enumerate(takers):
            end = start + share + (place < extra)
            given[member_id].update(Part(topic_id, index) for index in range(start, end))
            start = end
    return {member_id: frozenset(parts) for member_id, parts in given.items()}


def assign_uniform(members: list[Subscriber], topics: Mapping[bytes, int], last: Mapping[str, Parts]) -> Assignment:
    """Assign even shares; a member keeps its partitions as far as its share allows."""
    given = {one.member_id: _still_its(one, topics, last) for one in members}
    taken = {part for parts in given.values() for part in parts}
    free = [Part(topic_id, index) for topic_id, count in topics.items() for index in range(count)]
    free = [part for part in free if part not in taken]
    if len({one.topics for one in members}) == 1:
        _level(given, free, [one.member_id for one in members])
    else:
        _spread(given, free, members)
    return {member_id: frozenset(parts) for member_id, parts in given.items()}


def _still_its(member: Subscriber, topics: Mapping[bytes, int], last: Mapping[str, Parts]) -> list[Part]:
    """Return the partitions of a member that it may keep, in order."""
    return sorted(
        part
        for part in last.get(member.member_id, NOTHING)
        if part.topic_id in member.topics and part.number < topics.get(part.topic_id, 0)
    )


def _level(given: dict[str, list[Part]], free: list[Part], member_ids: list[str]) -> None:
    """Assign free partitions to members with the same subscription: only the counts matter."""
    total = len(free) + sum(len(parts) for parts in given.values())
    share, extra = divmod(total, len(member_ids))
    # The members with most partitions keep one more, if some must have one more.
    by_size = sorted(member_ids, key=lambda one: (-len(given[one]), one))
    shares = {member_id: share + (place < extra) for place, member_id in enumerate(by_size)}
    for member_id in member_ids:
        free += given[member_id][shares[member_id] :]
        del given[member_id][shares[member_id] :]
    free.sort()
    free.reverse()
    for member_id in member_ids:
        while len(given[member_id]) < shares[member_id]:
            given[member_id].append(free.pop())


def _spread(given: dict[str, list[Part]], free: list[Part], members: list[Subscriber]) -> None:
    """Assign free partitions to the members with fewest, then move some from those with most."""
    takers: dict[bytes, list[str]] = {}
    for one in members:
        for topic_id in one.topics:
            takers.setdefault(topic_id, []).append(one.member_id)
    # Topics with the fewest subscribers come first: the others can go to more members.
    free = sorted(
        (part for part in free if takers.get(part.topic_id)), key=lambda one: (len(takers[one.topic_id]), one)
    )
    heaps = {topic_id: [(len(given[one]), one) for one in sorted(ids)] for topic_id, ids in takers.items()}
    for heap in heaps.values():
        heapq.heapify(heap)
    for part in free:
        heap = heaps[part.topic_id]
        while heap[0][0] != len(given[heap[0][1]]):  # a partition of another topic changed its count
            heapq.heapreplace(heap, (len(given[heap[0][1]]), heap[0][1]))
        given[heap[0][1]].append(part)
    _balance(given, takers)


def _balance(given: dict[str, list[Part]], takers: Mapping[bytes, list[str]]) -> None:
    """Move partitions to members with at least two fewer, as long as one has."""
    moved = True
    while moved:
        moved = False
        for giver in sorted(given, key=lambda one: (-len(given[one]), one)):
            for part in list(given[giver]):
                taker = min(takers[part.topic_id], key=lambda one: (len(given[one]), one))
                if len(given[taker]) + 1 < len(given[giver]):
                    given[giver].remove(part)
                    given[taker].append(part)
                    moved = True


ASSIGNORS: dict[str, Assignor] = {"uniform": assign_uniform, "range": assign_range}
