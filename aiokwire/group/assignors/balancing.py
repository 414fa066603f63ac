"""Even shares with few moves: the common part of both sticky assignors.

Three aims, in this order:
1. Balance: moving a partition, or a chain of partitions (one from A to B so that another can move
   from B to C), cannot make shares more even. Shares of members with the same topics differ by at
   most one.
2. Stickiness: a member keeps its partitions as far as 1 allows.
3. Locality: partitions are read from their reader's rack (KIP-881), as far as moves and swaps of
   two allow without affecting 1.

The result is stable: applied to its own assignment it changes nothing, so cooperative groups
settle.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Mapping

from aiokwire.group.assignors.base import Assignment, Partitions, racks_matter
from aiokwire.types import TopicPartition

# The former owner of each partition.
Owners = Mapping[TopicPartition, str]
NOWHERE: frozenset[str] = frozenset()


class Shares:
    """The partitions of each member during the assignment."""

    def __init__(self, wants: Mapping[str, Iterable[str]], partitions: Partitions, owners: Owners) -> None:
        """`wants`: the topics of each member, in the order in which members receive partitions."""
        self.wants: dict[str, dict[str, None]] = {
            member: dict.fromkeys(t for t in topics if t in partitions) for member, topics in wants.items()
        }
        self.owners = owners
        self.loads: dict[str, int] = dict.fromkeys(wants, 0)
        self.held: dict[str, dict[str, dict[TopicPartition, None]]] = {member: {} for member in wants}
        self.holders: dict[str, dict[str, None]] = {topic: {} for topic in partitions}
        self.takers: dict[str, list[str]] = {topic: [] for topic in partitions}
        for member, topics in self.wants.items():
            for topic in topics:
                self.takers[topic].append(member)
        self.free: list[TopicPartition] = []
        for infos in partitions.values():
            for info in infos:
                tp = info.topic_partition
                owner = owners.get(tp)
                if owner in self.wants and tp.topic in self.wants[owner]:
                    self.give(owner, tp)
                elif self.takers[tp.topic]:
                    self.free.append(tp)

    def give(self, member: str, tp: TopicPartition) -> None:
        """Give a partition to `member`."""
        self.held[member].setdefault(tp.topic, {})[tp] = None
        self.holders[tp.topic][member] = None
        self.loads[member] += 1

    def take(self, member: str, tp: TopicPartition) -> None:
        """Take a partition from `member`."""
        mine = self.held[member][tp.topic]
        del mine[tp]
        if not mine:
            del self.held[member][tp.topic]
            del self.holders[tp.topic][member]
        self.loads[member] -= 1

    def move(self, tp: TopicPartition, giver: str, taker: str) -> None:
        self.take(giver, tp)
        self.give(taker, tp)

    def of(self, member: str) -> list[TopicPartition]:
        """Return all partitions of `member`."""
        return [tp for mine in self.held[member].values() for tp in mine]

    def holder_of(self) -> dict[TopicPartition, str]:
        """Return the member of each partition."""
        return {tp: member for member in self.held for tp in self.of(member)}


class Racks:
    """The racks of members and partitions."""

    def __init__(self, members: Mapping[str, str | None], partitions: Partitions) -> None:
        """`members`: the rack of each, if it has one."""
        self._members = {member: rack for member, rack in members.items() if rack}
        replicas = {info.topic_partition: info.racks for infos in partitions.values() for info in infos}
        self.matter: bool = racks_matter(self._members.values(), replicas.values())
        self._replicas = replicas if self.matter else {}

    def rack_of(self, member: str) -> str | None:
        return self._members.get(member)

    def racks_of(self, tp: TopicPartition) -> frozenset[str]:
        return self._replicas.get(tp, NOWHERE)

    def near(self, member: str, tp: TopicPartition) -> bool:
        """Return whether the partition has a replica in the member's rack."""
        return self._members.get(member) in self._replicas.get(tp, NOWHERE)

    def far(self, member: str, tp: TopicPartition) -> bool:
        """Return whether the member has a rack without a replica of the partition."""
        return self.matter and member in self._members and self._members[member] not in self._replicas[tp]


def balance(
    wants: Mapping[str, Iterable[str]], partitions: Partitions, owners: Owners, racks: Mapping[str, str | None]
) -> Assignment:
    """Return the assignment, by the aims above."""
    shares = Shares(wants, partitions, owners)
    near = Racks(racks, partitions)
    if len({frozenset(topics) for topics in shares.wants.values()}) == 1:
        _level(shares, near)
    else:
        _place(shares, near)
        _even_out(shares, near)
        _give_back(shares)
    if near.matter:
        _draw_near(shares, near)
    return {member: sorted(shares.of(member)) for member in shares.held}


def _level(shares: Shares, racks: Racks) -> None:
    """Assign by number alone: all members want the same topics."""
    total = len(shares.free) + sum(shares.loads.values())
    share, extra = divmod(total, len(shares.loads))
    # If some members must have one more, the members with the most partitions keep it.
    by_load = sorted(shares.loads, key=lambda member: -shares.loads[member])
    quotas = {member: share + (place < extra) for place, member in enumerate(by_load)}
    for member, load in list(shares.loads.items()):
        if load > quotas[member]:
            mine = sorted(shares.of(member), key=lambda tp: (racks.far(member, tp), tp.partition, tp.topic))
            for tp in mine[quotas[member] :]:
                shares.take(member, tp)
                shares.free.append(tp)
    free = sorted(shares.free)
    for nearby in (True, False) if racks.matter else (False,):
        left: list[TopicPartition] = []
        turn = deque(member for member, load in shares.loads.items() if load < quotas[member])
        for tp in free:
            for _ in range(len(turn)):
                member = turn.popleft()
                if not nearby or racks.near(member, tp):
                    shares.give(member, tp)
                    if shares.loads[member] < quotas[member]:
                        turn.append(member)
                    break
                turn.append(member)
            else:
                left.append(tp)
        free = left


def _place(shares: Shares, racks: Racks) -> None:
    """Give the free partitions to the members with the fewest, the least wanted topics first."""
    order = {member: place for place, member in enumerate(shares.loads)}
    heaps: dict[str, list[tuple[int, int, str]]] = {}
    for tp in sorted(shares.free, key=lambda tp: (len(shares.takers[tp.topic]), tp)):
        heap = heaps.get(tp.topic)
        if heap is None:
            heap = [(shares.loads[member], order[member], member) for member in shares.takers[tp.topic]]
            heapq.heapify(heap)
            heaps[tp.topic] = heap
        while heap[0][0] != shares.loads[heap[0][2]]:  # it has received a partition meanwhile
            heapq.heapreplace(heap, (shares.loads[heap[0][2]], *heap[0][1:]))
        member = heap[0][2]
        if racks.matter and not racks.near(member, tp):
            least = heap[0][0]
            alike = (one for one in shares.takers[tp.topic] if shares.loads[one] == least and racks.near(one, tp))
            member = next(alike, member)
        shares.give(member, tp)


def _even_out(shares: Shares, racks: Racks) -> None:
    """Serve the member with the fewest partitions: move partitions to it along the shortest chain
    from a member that has at least two more. Without such a chain, the member and all members on
    its chains are settled, and a smaller group remains. Each move makes shares more even, so the
    loop ends.
    """
    order = {member: place for place, member in enumerate(shares.loads)}
    heap = [(load, order[member], member) for member, load in shares.loads.items()]
    heapq.heapify(heap)
    settled: set[str] = set()
    while heap:
        load, _, taker = heapq.heappop(heap)
        if taker in settled or load != shares.loads[taker]:
            continue
        ways: dict[str, tuple[str, str]] = {}
        giver = _find_giver(shares, taker, settled, ways)
        if giver is None:
            settled.add(taker)
            settled.update(ways)
            continue
        ends = (giver, taker)
        while giver != taker:
            target, topic = ways[giver]
            shares.move(_cheapest(shares, racks, giver, target, topic), giver, target)
            giver = target
        for member in ends:
            heapq.heappush(heap, (shares.loads[member], order[member], member))


def _find_giver(shares: Shares, taker: str, settled: set[str], ways: dict[str, tuple[str, str]]) -> str | None:
    """Return the member with the most partitions, among the nearest ones with at least two more
    than `taker`. `ways` receives, for each visited member, the member that it can give a partition
    to, and the topic."""
    enough = shares.loads[taker] + 2
    seen: set[str] = set()  # topics
    frontier = [taker]
    while frontier:
        best: str | None = None
        beyond: list[str] = []
        for member in frontier:
            for topic in shares.wants[member]:
                if topic in seen:
                    continue
                seen.add(topic)
                for giver in shares.holders[topic]:
                    if giver == taker or giver in ways or giver in settled:
                        continue
                    ways[giver] = (member, topic)
                    beyond.append(giver)
                    load = shares.loads[giver]
                    if load >= enough and (best is None or load > shares.loads[best]):
                        best = giver
        if best is not None:
            return best
        frontier = beyond
    return None


def _cheapest(shares: Shares, racks: Racks, giver: str, taker: str, topic: str) -> TopicPartition:
    """Return the best partition to move: to its owner, not from it, into the taker's rack."""

    def cost(tp: TopicPartition) -> tuple[bool, bool, bool, int]:
        owner = shares.owners.get(tp)
        return (owner != taker, owner == giver, not racks.near(taker, tp), -tp.partition)

    return min(shares.held[giver][topic], key=cost)


def _give_back(shares: Shares) -> None:
    """Return partitions to their former owners, in exchange for other new partitions of theirs."""
    for tp, holder in shares.holder_of().items():
        owner = shares.owners.get(tp)
        if owner is None or owner == holder or tp.topic not in shares.wants.get(owner, ()):
            continue
        if tp not in shares.held[holder].get(tp.topic, ()):
            continue  # exchanged already
        if shares.loads[owner] < shares.loads[holder]:
            shares.move(tp, holder, owner)
            continue
        for topic in shares.held[owner].keys() & shares.wants[holder].keys():
            found = next((one for one in shares.held[owner][topic] if shares.owners.get(one) != owner), None)
            if found is not None:
                shares.move(tp, holder, owner)
                shares.move(found, owner, holder)
                break


def _draw_near(shares: Shares, racks: Racks) -> None:
    """Move and swap partitions into the racks of their readers, none out of its reader's rack."""
    in_rack: dict[str, list[str]] = {}
    for member in shares.loads:
        in_rack.setdefault(racks.rack_of(member) or "", []).append(member)
    moved = True
    while moved:  # each move brings one more partition to its rack, so the loop ends
        moved = False
        hopeless: set[tuple[object, ...]] = set()  # kinds of partitions, until the next move
        for tp, holder in sorted((tp, holder) for tp, holder in shares.holder_of().items() if racks.far(holder, tp)):
            if tp not in shares.held[holder].get(tp.topic, ()):
                continue  # swapped meanwhile
            wanted = frozenset(shares.wants[holder])
            kind = (racks.rack_of(holder), wanted, shares.loads[holder], tp.topic, racks.racks_of(tp))
            if kind in hopeless:
                continue
            for taker in (one for rack in sorted(racks.racks_of(tp)) for one in in_rack.get(rack, ())):
                if tp.topic in shares.wants[taker] and _bring(shares, racks, tp, holder, taker):
                    hopeless.clear()
                    moved = True
                    break
            else:
                hopeless.add(kind)


def _bring(shares: Shares, racks: Racks, tp: TopicPartition, holder: str, taker: str) -> bool:
    """Move a partition from `holder` to `taker` if shares stay as even; return whether it moved."""
    if shares.loads[taker] < shares.loads[holder]:
        shares.move(tp, holder, taker)
        return True
    for topic, mine in shares.held[taker].items():
        if topic not in shares.wants[holder]:
            continue
        for other in mine:
            if racks.near(holder, other) or racks.far(taker, other):
                shares.move(tp, holder, taker)
                shares.move(other, taker, holder)
                return True
    return False
