"""Groups for tests of assignors: made by hand, or by hypothesis."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import strategies as st

from aiokwire.group.assignors import PartitionInfo
from aiokwire.group.subscription_format import MemberSubscription
from aiokwire.types import TopicPartition

TOPICS = ("t", "u", "v", "w")
RACKS = ("a", "b", "c")
# The racks of a topic's partitions in turn.
PATTERNS = ((), ("ab", "bc", "ca"), ("a", "b", "c"), ("a", "a", "b"), ("abc",), ("c", "", "ab", "b"), ("bc", "ab"))

Group = dict[str, MemberSubscription]
Topics = dict[str, list[PartitionInfo]]
Given = Mapping[str, list[TopicPartition]]


def topic(name: str, count: int, *racks: str) -> dict[str, list[PartitionInfo]]:
    """`racks`: of each partition in turn, one letter a rack, as in "ab", "bc"."""
    return {
        name: [
            PartitionInfo(name, number, frozenset(racks[number % len(racks)] if racks else ()))
            for number in range(count)
        ]
    }


def member(name: str, *topics: str, rack: str | None = None, static: str | None = None) -> Group:
    return {name: MemberSubscription(name, topics, instance_id=static, rack_id=rack)}


def tps(text: str) -> list[TopicPartition]:
    """ "t0 u1" and so on."""
    return [TopicPartition(one[0], int(one[1:])) for one in text.split()]


@st.composite
def topics(draw: st.DrawFn, most: int = 12) -> Topics:
    found: Topics = {}
    for name in draw(st.sets(st.sampled_from(TOPICS), min_size=1)):
        found |= topic(name, draw(st.integers(1, most)), *draw(st.sampled_from(PATTERNS)))
    return found


@st.composite
def groups(draw: st.DrawFn, *, racked: bool | None = None) -> Group:
    """Members with random topics; some static, some with racks (all or none where `racked` says so)."""
    found: Group = {}
    for name in draw(st.sets(st.text("abcdefgh", min_size=1, max_size=3), min_size=1, max_size=8)):
        rack = draw(st.sampled_from(RACKS if racked else (*RACKS, None))) if racked is not False else None
        found[name] = MemberSubscription(
            member_id=name,
            topics=tuple(sorted(draw(st.frozensets(st.sampled_from(TOPICS))))),
            instance_id=draw(st.sampled_from([None, None, f"static-{name[::-1]}"])),
            rack_id=rack,
        )
    return found


def alike(members: Group) -> Group:
    """The same members, all with the topics of the first."""
    first = next(iter(members.values()))
    return {name: one._replace(topics=first.topics) for name, one in members.items()}


def wanted(members: Group, partitions: Topics) -> Topics:
    """What the group can be given: topics that somebody subscribes to."""
    return {name: infos for name, infos in partitions.items() if any(name in one.topics for one in members.values())}


def check(members: Group, partitions: Topics, given: Given, *, complete: bool = True) -> None:
    """Each partition has exactly one owner, that subscribes to it; every member has an entry."""
    assert given.keys() == members.keys()
    everything = [tp for mine in given.values() for tp in mine]
    assert len(everything) == len(set(everything)), "given twice"
    there = {info.topic_partition for infos in wanted(members, partitions).values() for info in infos}
    assert set(everything) <= there, "what is not there"
    if complete:
        assert set(everything) == there, "left out"
    for name, mine in given.items():
        assert all(tp.topic in members[name].topics for tp in mine), "given to one that does not want it"
