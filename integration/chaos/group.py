"""A group under a steady load, for `rolling` and `consume`: members, records and checks.

Members and producer share one loop and one clock, so that a record's latency is exact and two cores
suffice for them and a broker. Members that will be killed run in their own processes, with the same
clock.
"""

from __future__ import annotations

import contextlib
import itertools
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.abc

from aiokwire import Admin, Consumer, Producer, TopicPartition
from aiokwire.admin import NewTopic
from aiokwire.errors import KafkaError
from integration.chaos.account import Account
from integration.chaos.apart import Apart
from integration.chaos.feed import Feed, read_value
from integration.chaos.member import Member
from integration.chaos.moment import now

# Longer than any outage: no record fails.
_DELIVERY_TIMEOUT_MS: Final = 600_000
_LOOK_SECONDS: Final = 0.01
_PATIENCE: Final = 60.0
_POLL_SECONDS: Final = 1.0
_ASK_SECONDS: Final = 0.3  # between two requests for the committed offsets

PROTOCOLS: Final[dict[str, dict[str, Any]]] = {
    "cooperative": {"partition_assignment_strategy": "cooperative-sticky"},
    "static": {"partition_assignment_strategy": "cooperative-sticky", "group_instance_id": "{name}"},
    "consumer": {"group_protocol": "consumer"},
    "consumer-static": {"group_protocol": "consumer", "group_instance_id": "{name}"},
}


class GroupFailed(AssertionError):
    """A condition was not met in time."""


class Group:
    """`size` members, by name, that read the topic of a feed."""

    def __init__(
        self,
        bootstrap: str,
        tasks: anyio.abc.TaskGroup,
        feed: Feed,
        topic: str,
        account: Account,
        *,
        partitions: int,
        size: int,
        apart: bool,
        log: Path | None,
    ) -> None:
        """`apart`: each member runs in its own process, which logs to the directory `log`."""
        self._bootstrap = bootstrap
        self._apart = apart
        self._log = log
        self._prepared: dict[str, Apart] = {}
        self.id = f"{topic}-group"
        self.names = [f"member-{number}" for number in range(size)]
        self.members: dict[str, Member | Apart] = {}
        self.uncommitted = 0  # records that killed members had received and not committed
        self.account = account
        self.feed = feed
        self._topic = topic
        self._partitions = partitions
        self._tasks = tasks
        self._gone: list[Member | Apart] = []
        self._numbers = itertools.count()
        self._dead: set[str] = set()  # client ids

    async def prepare(self, name: str, options: dict[str, Any]) -> None:
        """Start the process of a member, so that `start` takes no time."""
        member = self._prepared[name] = Apart(
            name, self._topic, self.account, log=self._log, **self._given(name, options)
        )
        await self._tasks.start(member.run)

    async def start(self, name: str, options: dict[str, Any]) -> None:
        """Start a member; return when its consumer has started."""
        if self._apart:
            if name not in self._prepared:
                await self.prepare(name, options)
            apart = self.members[name] = self._prepared.pop(name)
            await apart.begin()
        else:
            member = self.members[name] = Member(name, self._topic, self.account, **self._given(name, options))
            await self._tasks.start(member.run)

    def _given(self, name: str, options: dict[str, Any]) -> dict[str, Any]:
        given = {key: value.format(name=name) if isinstance(value, str) else value for key, value in options.items()}
        given["client_id"] = f"{name}-{next(self._numbers)}"
        return given | {"bootstrap_servers": self._bootstrap, "group_id": self.id, "auto_offset_reset": "earliest"}

    async def stop(self, name: str) -> None:
        """Stop a member, which commits and leaves."""
        member = self.members.pop(name)
        self._gone.append(member)
        await member.stop()

    async def kill(self, name: str) -> frozenset[int]:
        """Send SIGKILL to a member and return its partitions. Needs a running broker."""
        member = self.members.pop(name)
        assert isinstance(member, Apart)
        self._gone.append(member)
        await member.kill()
        self._dead.add(member.client_id)
        async with Admin(self._bootstrap) as admin:
            committed = await self._ask(admin)
        self.uncommitted += sum(self.account.end(number) - committed.get(number, 0) for number in member.owned)
        return member.owned

    async def assigned_to_killed(self) -> frozenset[int]:
        """Return the partitions assigned to killed members. Needs a running broker.

        They may differ from those that the members read: a member that is killed as it joins gets
        its assignment afterwards.
        """
        if not self._dead:
            return frozenset()
        async with Admin(self._bootstrap) as admin:
            described = await admin.describe_group(self.id)
        dead = [member for member in described.members if member.client_id in self._dead]
        return frozenset(tp.partition for member in dead for tp in (*member.assignment, *(member.target or ())))

    async def stand_by(self) -> None:
        """Read all partitions without a group, and report to the account, until cancelled."""
        partitions = [TopicPartition(self._topic, number) for number in range(self._partitions)]
        options: dict[str, Any] = {"bootstrap_servers": self._bootstrap, "auto_offset_reset": "earliest"}
        async with Consumer(partitions=partitions, **options) as consumer:
            while True:
                records = await consumer.getmany(timeout=_POLL_SECONDS)
                here = now()
                for record in records:
                    self.account.seen(record.partition, read_value(record.value)[0], now=here)

    async def watch_commits(self) -> None:
        """Report committed offsets to the account, until cancelled."""
        async with Admin(self._bootstrap) as admin:
            while True:
                with contextlib.suppress(KafkaError):  # brokers may be down
                    await self._ask(admin)
                await anyio.sleep(_ASK_SECONDS)

    async def _ask(self, admin: Admin) -> dict[int, int]:
        offsets = await admin.list_group_offsets(self.id)
        committed = {tp.partition: offset.offset for tp, offset in offsets.items()}
        here = now()
        for partition, offset in committed.items():
            self.account.committed(partition, offset, now=here)
        return committed

    async def settled(self, partitions: int) -> None:
        """Wait until all partitions are assigned, the same number to each member.

        Raises: GroupFailed: the group did not settle in time.
        """
        share = partitions // len(self.names)

        def check() -> bool:
            owned = [member.owned for member in self.members.values()]
            return len(frozenset[int]().union(*owned)) == partitions and all(len(each) == share for each in owned)

        await self.until(check, "an even share of every partition")

    async def until(self, check: Callable[[], bool], what: str) -> None:
        """Wait until `check` returns True; raise GroupFailed if it does not."""
        with anyio.move_on_after(_PATIENCE):
            while not check():  # noqa: ASYNC110 - there is no public event
                await anyio.sleep(_LOOK_SECONDS)
            return
        owned = {name: sorted(member.owned) for name, member in self.members.items()}
        raise GroupFailed(f"{what}: not within {_PATIENCE} s; owned: {owned}; {self.wrong()}")

    async def finish(self) -> None:
        """Stop the feed, read what is left, and stop the members."""
        await self.feed.stop()
        await self.until(lambda: self.account.has_all(self.feed.sent), "every record")
        for name in list(self.members):
            await self.stop(name)

    def wrong(self) -> list[str]:
        """Return the broken guarantees, of those that hold for any group."""
        members = [*self._gone, *self.members.values()]
        lost = self.account.lost(self.feed.sent)
        return [
            *([f"{lost} record(s) were received by no member"] if lost else []),
            *self.account.faults,
            *(f"the producer failed: {error}" for error in self.feed.failed[:5]),
            *(f"{member} raised {error}" for member in members for error in member.errors[:5]),
        ]

    @property
    def generations(self) -> frozenset[int]:
        """The generations that member processes have joined; for other members see `Rebalances`."""
        members = [*self._gone, *self.members.values()]
        return frozenset().union(*(member.generations for member in members if isinstance(member, Apart)))

    @property
    def lost_partitions(self) -> int:
        """The number of times a partition was lost instead of revoked."""
        return sum(member.lost_partitions for member in [*self._gone, *self.members.values()])


@asynccontextmanager
async def open_group(
    bootstrap: str,
    *,
    partitions: int,
    size: int,
    rate: float,
    apart: bool = False,
    bystander: bool = False,
    log: Path | None = None,
) -> AsyncIterator[Group]:
    """Create a topic with its feed, and a group without members.

    `apart`: members run in their own processes.
    """
    topic = f"chaos-{uuid.uuid4().hex[:8]}"
    async with Admin(bootstrap) as admin:
        (await admin.create_topics([NewTopic(topic, partitions)])).check()
    async with (
        Producer(bootstrap, delivery_timeout_ms=_DELIVERY_TIMEOUT_MS) as producer,
        anyio.create_task_group() as tasks,
    ):
        feed = Feed(producer, topic, partitions, rate=rate)
        group = Group(
            bootstrap, tasks, feed, topic, Account(partitions), partitions=partitions, size=size, apart=apart, log=log
        )
        tasks.start_soon(feed.run)
        tasks.start_soon(group.watch_commits)
        if bystander:
            tasks.start_soon(group.stand_by)
        yield group
        tasks.cancel_scope.cancel()
