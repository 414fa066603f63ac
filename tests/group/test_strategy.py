"""The assignors that a member offers, and the partitions that it keeps: the rules, and a model of a
group."""

from __future__ import annotations

import itertools
from typing import Any, Final

from hypothesis import given, settings
from hypothesis import strategies as st

from aiokwire.group.assignors import (
    ASSIGNORS,
    Assignor,
    CooperativeStickyAssignor,
    PartitionInfo,
    RangeAssignor,
    StickyAssignor,
)
from aiokwire.group.classic.decisions import plan_reconciliation, plan_revocation
from aiokwire.group.strategy import OWNS, Strategy, TeamStickyAssignor, auto_assignors
from aiokwire.group.subscription_format import MemberSubscription, decode_subscription
from aiokwire.types import TopicPartition

TOPIC: Final = frozenset({"t"})
PARTITIONS: Final = [TopicPartition("t", number) for number in range(5)]


def auto() -> Strategy:
    return Strategy(auto_assignors(), is_auto=True)


def names(assignors: Any) -> list[str]:
    return [assignor.name for assignor in assignors]


def test_an_explicit_list_is_offered_as_it_is_and_keeps_partitions_only_if_all_are_cooperative() -> None:
    both = Strategy([CooperativeStickyAssignor(), RangeAssignor()])
    for owns, chosen in itertools.product((True, False), (None, *both.assignors)):
        assert both.offered(chosen, owns=owns) == both.assignors
        assert not both.is_cooperative(chosen)
    assert Strategy([CooperativeStickyAssignor()]).is_cooperative(None)
    assert not Strategy([StickyAssignor()]).is_cooperative(None)
    members = [MemberSubscription("m", ("t",), user_data=OWNS)]
    assert not both.must_yield(RangeAssignor(), members)


def test_a_member_with_partitions_offers_eager_assignors_only_in_groups_of_its_kind() -> None:
    strategy = auto()
    everything = ["aiokwire-cooperative-sticky", "cooperative-sticky", "range", "roundrobin"]
    assert names(strategy.offered(None, owns=False)) == everything
    assert names(strategy.offered(TeamStickyAssignor(), owns=True)) == everything
    assert names(strategy.offered(CooperativeStickyAssignor(), owns=True)) == everything[:2]
    assert names(strategy.offered(CooperativeStickyAssignor(), owns=False)) == everything
    assert not strategy.is_cooperative(RangeAssignor())
    assert strategy.should_offer_more(TeamStickyAssignor(), strategy.assignors[:2])
    assert not strategy.should_offer_more(CooperativeStickyAssignor(), strategy.assignors[:2])


def test_only_eager_assignors_get_the_user_data_owns() -> None:
    strategy = auto()
    for owned, marked in ((frozenset(PARTITIONS), True), (frozenset[TopicPartition](), False)):
        for name, data in strategy.encode(strategy.assignors, TOPIC, owned, 3, "r"):
            found = decode_subscription("m", data)
            assert (found.user_data == OWNS) == (marked and name in ("range", "roundrobin"))
            assert (frozenset(found.owned), found.generation, found.rack_id) == (owned, 3, "r")


# --- a model: a coordinator that follows Kafka's rules, and members that act by `Strategy` ----------------------------


class Modelled:
    """One member."""

    def __init__(self, name: str, given: tuple[str, ...]) -> None:
        self.name = name
        self.strategy = auto() if given == AUTO else Strategy([ASSIGNORS[one]() for one in given])
        self.chosen: Assignor | None = None
        self.leader = ""
        self.owned: frozenset[TopicPartition] = frozenset()
        self.offered: tuple[Assignor, ...] = ()
        self.revoking: frozenset[TopicPartition] = frozenset()  # after the other members have added their partitions

    def revoke(self, *, everything: bool = False) -> None:
        """Revoke the partitions that must not be kept during a join."""
        cooperative = not everything and self.strategy.is_cooperative(self.chosen)
        self.owned -= plan_revocation(self.owned, TOPIC, cooperative=cooperative)

    def offers(self) -> tuple[Assignor, ...]:
        return self.strategy.offered(self.chosen, owns=bool(self.owned))


class Model:
    """A group. Members revoke partitions before others receive their assignment only if the
    protocol guarantees it."""

    def __init__(self) -> None:
        self.members: dict[str, Modelled] = {}
        self.leader = ""

    def admits(self, member: Modelled) -> bool:
        """Return whether the group accepts the join; a refused one changes nothing."""
        common = [set(names(one.offered)) for one in self.members.values()]
        offered = set(names(member.offers()))
        return not common or bool(set.intersection(*common) & offered)

    def join(self, member: Modelled) -> None:
        if not self.admits(member):
            assert not member.strategy.is_auto
            assert not all(one.strategy.is_auto for one in self.members.values())
            return
        member.offered = member.offers()
        self.members[member.name] = member
        self.leader = self.leader or member.name
        self.rebalance()

    def leave(self, name: str) -> None:
        del self.members[name]
        if name == self.leader:
            self.leader = min(self.members)
        self.rebalance()

    def rebalance(self) -> None:
        for member in self.members.values():
            member.revoke()
            if not self.admits(member):
                member.revoke(everything=True)
                assert self.admits(member)
            member.offered = member.offers()
        self._generate()

    def _generate(self) -> None:
        members = list(self.members.values())
        common = set.intersection(*(set(names(one.offered)) for one in members))
        votes = [next(name for name in names(one.offered) if name in common) for one in members]
        chosen = max(sorted(set(votes)), key=votes.count)
        leader = self.members[self.leader]
        subscriptions: dict[str, MemberSubscription] = {}
        for one in members:
            data = dict(one.strategy.encode(one.offered, TOPIC, one.owned, 1, None))[chosen]
            subscriptions[one.name] = decode_subscription(one.name, data)
        assignor = {one.name: one for one in leader.offered}[chosen]
        infos = {"t": [PartitionInfo("t", tp.partition) for tp in PARTITIONS]}
        if leader.strategy.must_yield(assignor, subscriptions.values()):
            given: dict[str, list[TopicPartition]] = {one.name: [] for one in members}
        else:
            given = assignor.assign(subscriptions, infos)
        again = False
        for one in members:  # one after the other: no member may receive a partition that another has not revoked
            mine = next(each for each in one.offered if each.name == chosen)
            yields = one.strategy.is_auto and not mine.cooperative and bool(one.owned)
            assert not yields or one.leader == self.leader, "a foreign leader assigned partitions of this member"
            plan = plan_reconciliation(
                one.owned,
                () if yields else given[one.name],
                cooperative=yields or one.strategy.is_cooperative(mine),
            )
            for other in members:
                assert other is one or not plan.add & other.owned, f"{one.name} takes what {other.name} owns"
            one.chosen, one.leader = mine, self.leader
            again |= plan.rejoin or one.strategy.should_offer_more(mine, one.offered)
            one.owned |= plan.add
            one.revoking = plan.revoke
        for one in members:
            one.owned -= one.revoking
        if again:
            self.rebalance()


AUTO: Final = ("auto",)
LISTS: Final[list[tuple[str, ...]]] = [
    AUTO,
    ("roundrobin",),
    ("range", "roundrobin"),
    ("range", "cooperative-sticky"),
    ("cooperative-sticky",),
]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9), st.sampled_from([AUTO, AUTO, *LISTS])), max_size=14))
def test_members_of_any_clients_join_and_leave_and_no_partition_has_two_owners(
    events: list[tuple[bool, int, tuple[str, ...]]],
) -> None:
    group = Model()
    for number, (comes, which, offered) in enumerate(events):
        if comes or len(group.members) < 2:
            group.join(Modelled(f"m{number}", offered))
        else:
            group.leave(sorted(group.members)[which % len(group.members)])
        owned = [tp for member in group.members.values() for tp in member.owned]
        assert sorted(owned) == PARTITIONS
        alone = all(member.strategy.is_auto for member in group.members.values())
        assert alone == all(isinstance(member.chosen, TeamStickyAssignor) for member in group.members.values())
