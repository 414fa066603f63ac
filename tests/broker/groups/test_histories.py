"""Random histories of groups: whatever happens, no partition has two owners, and in the end everything has one."""

from __future__ import annotations

import random

import pytest

from aiokwire.broker import Broker
from aiokwire.error_codes import ErrorCode
from tests.broker.grouped import ModernMember, RawMember, close, rebalance
from tests.broker.raw import RawClient

TOPICS = {"t": 5, "u": 3}
STEPS = 60
WHAT = ("join", *["beat"] * 8, "lost", "leave", "away", "back", "evict", "want", "grow", "move")


class ConsumerHistory:
    """Members of the consumer protocol that do what a generator of random numbers says."""

    def __init__(self, broker: Broker, client: RawClient, rng: random.Random) -> None:
        self.broker = broker
        self.client = client  # one for all: each of its requests is answered at once
        self.rng = rng
        self.members: list[ModernMember] = []
        self.away: list[str] = []  # instances of static members that left for a while
        self.made = 0

    async def step(self) -> None:
        """One thing that happens."""
        one = self.rng.choice(self.members) if self.members else None
        what = self.rng.choice(
            ("join", *["beat"] * 8, "lost", "leave", "away", "back", "evict", "want", "grow", "move")
        )
        if what == "join" and len(self.members) < 6:
            await self.join(self.rng.choice([None, f"i{self.made}"]))
        elif what == "back" and self.away:
            await self.join(self.away.pop())
        elif what == "grow":
            topic = self.broker.state.topics.require(self.rng.choice(list(TOPICS)))
            self.broker.state.topics.add_partitions(topic, min(len(topic.partitions) + 1, 9))
        elif what == "move":
            self.broker.state.groups.hand_over(["g"])
        elif one is not None:
            await self.act(one, what)

    async def join(self, instance: str | None) -> None:
        self.made += 1
        topics = self.rng.choice([["t"], ["u"], ["t", "u"]])
        one = ModernMember(self.broker, self.client, f"m{self.made}", topics=topics, instance=instance)
        self.members.append(one)
        await self.beat(one, join=True)

    async def act(self, one: ModernMember, what: str) -> None:
        if what == "beat":
            await self.beat(one)
        elif what == "lost":  # the answer: the member says everything with its next heartbeat
            had, epoch = one.owned, one.epoch
            await self.beat(one)
            one.epoch, one.owned = epoch, {topic: list(some) for topic, some in had.items()}
            await self.beat(one, full=True)
        elif what == "leave":
            self.members.remove(one)
            while await one.leave() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                pass
        elif what == "away" and one.instance is not None:
            self.members.remove(one)
            self.away.append(one.instance)
            while await one.leave(for_a_while=True) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                pass
        elif what == "evict" and one.member_id in self.known():
            self.members.remove(one)
            self.broker.evict("g", one.member_id)
        elif what == "want":
            one.topics = self.rng.choice([["t"], ["u"], ["t", "u"]])
            await self.beat(one, full=True)

    def known(self) -> set[str]:
        return set(self.broker.group("g").members) if "g" in self.broker.state.groups.ids() else set()

    async def beat(self, one: ModernMember, *, join: bool = False, full: bool = False) -> None:
        while (code := await one.beat(join=join, full=full)) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            pass
        if code in {ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID}:
            one.owned = {}  # as a client gives up everything, and joins again
            await self.beat(one, join=True)
        else:
            assert code is ErrorCode.NONE

    def check(self) -> None:
        """Nobody has what another one has."""
        seen: dict[tuple[str, int], str] = {}
        for one in self.members:
            for topic, numbers in one.owned.items():
                for number in numbers:
                    other = seen.setdefault((topic, number), one.member_id)
                    assert other == one.member_id, f"{topic}[{number}] of both {other} and {one.member_id}"

    async def settle(self) -> None:
        """Let nothing more happen, and see that every partition that is wanted has an owner."""
        for instance in self.away:
            (gone,) = [name for name, held in self.broker.group("g").members.items() if held == instance]
            self.broker.evict("g", gone)
        for _ in range(12):
            for one in self.members:
                await self.beat(one)
                self.check()
        wanted = {topic for one in self.members for topic in one.topics or ()}
        owned = {(topic, number) for one in self.members for topic, some in one.owned.items() for number in some}
        assert owned == {
            (topic, number)
            for topic in wanted
            for number in range(len(self.broker.state.topics.require(topic).partitions))
        }
        assert not self.members or self.broker.group("g").state == "Stable"


@pytest.mark.parametrize("seed", range(25))
async def test_the_consumer_protocol_never_gives_a_partition_twice(seed: int) -> None:
    async with Broker(topics=TOPICS, offsets_topic_num_partitions=1, rng=random.Random(seed)) as broker:
        client = await RawClient.connect(broker)
        history = ConsumerHistory(broker, client, random.Random(seed))
        await history.join(None)
        for _ in range(STEPS):
            await history.step()
            history.check()
        if "g" not in broker.state.groups.ids():
            await history.join(None)
        await history.settle()
        await client.close()


@pytest.mark.parametrize("seed", range(15))
async def test_members_of_a_classic_generation_agree_about_it(seed: int) -> None:
    """Members come, go, change and are evicted; each rebalance ends with one leader and the same generation for all."""
    rng = random.Random(seed)
    async with Broker(topics={"t": 1}, offsets_topic_num_partitions=1, rng=random.Random(seed)) as broker:
        members: list[RawMember] = []
        gone: list[RawMember] = []
        generation = 0
        for number in range(25):
            what = rng.choice(("come", "come", "go", "evict", "restart"))
            if what == "come" or not members:
                members.append(await RawMember.connect(broker, instance=rng.choice([None, f"i{number}"])))
                if members[-1].instance is None:
                    await members[-1].get_id()
            else:
                one = members.pop(rng.randrange(len(members)))
                gone.append(one)
                if what == "go":
                    assert await one.leave() is ErrorCode.NONE
                elif what == "evict":
                    broker.evict("g", one.member_id)
                elif one.instance is not None:
                    members.append(await RawMember.connect(broker, instance=one.instance))
                else:
                    broker.evict("g", one.member_id)
            if not members:
                assert broker.group("g").state == "Empty"
                generation = broker.group("g").generation
                continue
            for member in members:
                if member.generation >= 0:
                    await member.beat()
            for member in members:
                member.send_join(protocols=(("range", b"change %d" % number),))
            for member in members:
                assert await member.take_join() is ErrorCode.NONE
            await agree(members, generation)
            generation = members[0].generation
            for member in gone:
                assert await member.beat() in {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID}
            await rebalance(*members)
            generation = members[0].generation
        await close(*members, *gone)


async def agree(members: list[RawMember], before: int) -> None:
    """Everybody is told the same, of a generation after the last one."""
    (generation,) = {member.generation for member in members}
    assert generation > before
    (leader,) = [member for member in members if member.leads]
    assert leader.joined is not None
    assert {one.member_id for one in leader.joined.members} == {member.member_id for member in members}
    assignments = {member.member_id: member.member_id.encode() for member in members}
    for member in members:
        member.send_sync(assignments if member is leader else None)
    for member in members:
        assert await member.take_sync() == (ErrorCode.NONE, member.member_id.encode())
