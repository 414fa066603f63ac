"""Random histories of groups: no partition ever has two owners, and in the end each has one."""

from __future__ import annotations

import random

import anyio
import pytest

from aiokwire.broker import Broker
from aiokwire.error_codes import ErrorCode
from tests.broker.grouped import ConsumerProtocolMember, RawMember, close, rebalance
from tests.broker.raw import RawClient

TOPICS = {"t": 5, "u": 3}
STEPS = 60
WHAT = ("join", *["beat"] * 8, "lost", "leave", "away", "back", "evict", "want", "grow", "move")


class ConsumerHistory:
    """Members of the consumer protocol that act at random."""

    def __init__(self, broker: Broker, client: RawClient, rng: random.Random) -> None:
        self.broker = broker
        self.client = client  # shared: each of its requests gets a response at once
        self.rng = rng
        self.members: list[ConsumerProtocolMember] = []
        self.away: list[str] = []  # instances of static members that left for a while
        self.made = 0

    async def step(self) -> None:
        """Take one random step."""
        one = self.rng.choice(self.members) if self.members else None
        what = self.rng.choice(WHAT)
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
        one = ConsumerProtocolMember(self.broker, self.client, f"m{self.made}", topics=topics, instance=instance)
        self.members.append(one)
        await self.beat(one, join=True)

    async def act(self, one: ConsumerProtocolMember, what: str) -> None:
        if what == "beat":
            await self.beat(one)
        elif what == "lost":  # the response: the next heartbeat is a full one
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
            self.broker.faults.evict("g", one.member_id)
        elif what == "want":
            one.topics = self.rng.choice([["t"], ["u"], ["t", "u"]])
            await self.beat(one, full=True)

    def known(self) -> set[str]:
        return set(self.broker.faults.group("g").members) if "g" in self.broker.state.groups.ids() else set()

    async def beat(self, one: ConsumerProtocolMember, *, join: bool = False, full: bool = False) -> None:
        while (code := await one.beat(join=join, full=full)) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            pass
        if code in {ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID}:
            one.owned = {}  # as a client gives up everything, and joins again
            await self.beat(one, join=True)
        else:
            assert code is ErrorCode.NONE

    def check(self) -> None:
        """Assert that no partition has two owners."""
        seen: dict[tuple[str, int], str] = {}
        for one in self.members:
            for topic, numbers in one.owned.items():
                for number in numbers:
                    other = seen.setdefault((topic, number), one.member_id)
                    assert other == one.member_id, f"{topic}[{number}] of both {other} and {one.member_id}"

    async def settle(self) -> None:
        """Stop all changes, and check that every subscribed partition has an owner."""
        for instance in self.away:
            (gone,) = [name for name, held in self.broker.faults.group("g").members.items() if held == instance]
            self.broker.faults.evict("g", gone)
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
        assert not self.members or self.broker.faults.group("g").state == "Stable"


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


class ClassicHistory:
    """Members of the classic protocol that join, leave, return and are evicted."""

    def __init__(self, broker: Broker, rng: random.Random) -> None:
        self.broker = broker
        self.rng = rng
        self.members: list[RawMember] = []
        self.gone: list[RawMember] = []
        self.made = 0
        self.generation = 0

    async def step(self) -> None:
        """Take one random step, after which all members rejoin and agree."""
        what = self.rng.choice(("come", "come", "go", "evict", "restart"))
        if what == "come" or not self.members:
            await self.come()
        else:
            one = self.members.pop(self.rng.randrange(len(self.members)))
            self.gone.append(one)
            if what == "go":
                assert await one.leave() is ErrorCode.NONE
            elif what == "evict" or one.instance is None:
                self.broker.faults.evict("g", one.member_id)
            else:
                await self.restart(one)
        if self.members:
            await self.agree()
            for one in self.gone:
                assert await one.beat() in {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID}
        else:
            assert self.broker.faults.group("g").state == "Empty"

    async def come(self) -> None:
        """Join the group's next rebalance, so that it waits for this member."""
        one = await RawMember.connect(self.broker, instance=self.rng.choice([None, f"i{self.made}"]))
        self.made += 1
        self.members.append(one)
        if one.instance is None:
            await one.get_id()
        elif len(self.members) > 1:
            one.send_join(protocols=self.protocols())
            with anyio.fail_after(10):
                while len(self.broker.faults.group("g").members) < len(self.members):
                    await anyio.lowlevel.checkpoint()

    async def restart(self, old: RawMember) -> None:
        """Restart an instance, which stays in its generation (KIP-345, KIP-814)."""
        one = await RawMember.connect(self.broker, instance=old.instance)
        one.send_join()
        assert await one.take_join() is ErrorCode.NONE
        assert one.generation == old.generation
        assert self.broker.faults.group("g").state == "Stable"
        self.members.append(one)

    def protocols(self) -> list[tuple[str, bytes]]:
        return [("range", b"change %d" % self.made)]

    async def agree(self) -> None:
        """All members get the same response, with a newer generation and one leader."""
        for one in self.members:
            if not one.joining:
                one.send_join(protocols=self.protocols())
        for one in self.members:
            assert await one.take_join() is ErrorCode.NONE
        (generation,) = {one.generation for one in self.members}
        assert generation > self.generation
        (leader,) = [one for one in self.members if one.leads]
        assert leader.joined is not None
        assert {one.member_id for one in leader.joined.members} == {one.member_id for one in self.members}
        assignments = {one.member_id: one.member_id.encode() for one in self.members}
        for one in self.members:
            one.send_sync(assignments if one is leader else None)
        for one in self.members:
            assert await one.take_sync() == (ErrorCode.NONE, one.member_id.encode())
        await rebalance(*self.members)
        self.generation = self.members[0].generation


@pytest.mark.parametrize("seed", range(15))
async def test_members_of_a_classic_generation_agree_about_it(seed: int) -> None:
    async with Broker(topics={"t": 1}, offsets_topic_num_partitions=1, rng=random.Random(seed)) as broker:
        history = ClassicHistory(broker, random.Random(seed))
        for _ in range(25):
            await history.step()
        await close(*history.members, *history.gone)
