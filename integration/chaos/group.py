"""A group under a steady load: its members, what they were handed, and the verdict. Used by `rolling` and `consume`.

Members and producer live on one loop of one process: one clock says when a record was sent and when it was handed over,
and two cores hold them beside a broker.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import anyio.abc

from aiokwire import Admin, Producer
from aiokwire.admin import NewTopic
from integration.chaos.account import Account
from integration.chaos.feed import Feed
from integration.chaos.member import Member

# Longer than any outage: no record is given up.
_DELIVERY_TIMEOUT_MS: Final = 600_000
_LOOK_SECONDS: Final = 0.01
_PATIENCE: Final = 60.0

PROTOCOLS: Final[dict[str, dict[str, Any]]] = {
    "cooperative": {"partition_assignment_strategy": "cooperative-sticky"},
    "static": {"partition_assignment_strategy": "cooperative-sticky", "group_instance_id": "{name}"},
    "consumer": {"group_protocol": "consumer"},
}


class GroupFailed(AssertionError):
    """Something took for ever."""


class Group:
    """`size` members by name, that share a topic with a feed."""

    def __init__(
        self, bootstrap: str, tasks: anyio.abc.TaskGroup, feed: Feed, topic: str, account: Account, size: int
    ) -> None:
        self._bootstrap = bootstrap
        self.id = f"{topic}-group"
        self.names = [f"member-{number}" for number in range(size)]
        self.members: dict[str, Member] = {}
        self.account = account
        self.feed = feed
        self._topic = topic
        self._tasks = tasks
        self._gone: list[Member] = []

    async def start(self, name: str, options: dict[str, Any]) -> None:
        """Let a member come; returns when its consumer has started."""
        given = {key: value.format(name=name) if isinstance(value, str) else value for key, value in options.items()}
        given |= {"bootstrap_servers": self._bootstrap, "group_id": self.id, "auto_offset_reset": "earliest"}
        member = Member(name, self._topic, self.account, **given)
        self.members[name] = member
        await self._tasks.start(member.run)

    async def stop(self, name: str) -> None:
        """Let a member go."""
        member = self.members.pop(name)
        self._gone.append(member)
        await member.stop()

    async def settled(self, partitions: int) -> None:
        """Every partition has one owner, and the members have equally many.

        Raises: GroupFailed: not so, for long.
        """
        share = partitions // len(self.names)

        def check() -> bool:
            owned = [member.owned for member in self.members.values()]
            return len(frozenset[int]().union(*owned)) == partitions and all(len(each) == share for each in owned)

        await self.until(check, "an even share of every partition")

    async def until(self, check: Callable[[], bool], what: str) -> None:
        """Raises: GroupFailed: it does not become true."""
        with anyio.move_on_after(_PATIENCE):
            while not check():  # noqa: ASYNC110 - nothing public tells when
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
        """Every promise that was not kept, of those that hold for any group."""
        everybody = [*self._gone, *self.members.values()]
        lost = self.account.lost(self.feed.sent)
        return [
            *([f"{lost} record(s) were handed to nobody"] if lost else []),
            *self.account.faults,
            *(f"the producer failed: {error}" for error in self.feed.failed[:5]),
            *(f"{member} was raised {error}" for member in everybody for error in member.errors[:5]),
        ]

    @property
    def lost_partitions(self) -> int:
        """How many times a partition was lost, instead of given up."""
        return sum(member.lost_partitions for member in [*self._gone, *self.members.values()])


@asynccontextmanager
async def open_group(bootstrap: str, *, partitions: int, size: int, rate: float) -> AsyncIterator[Group]:
    """A new topic with its feed; the group has no member yet."""
    topic = f"chaos-{uuid.uuid4().hex[:8]}"
    async with Admin(bootstrap) as admin:
        (await admin.create_topics([NewTopic(topic, partitions)])).check()
    async with (
        Producer(bootstrap, delivery_timeout_ms=_DELIVERY_TIMEOUT_MS) as producer,
        anyio.create_task_group() as tasks,
    ):
        feed = Feed(producer, topic, partitions, rate=rate)
        group = Group(bootstrap, tasks, feed, topic, Account(partitions), size)
        tasks.start_soon(feed.run)
        yield group
        tasks.cancel_scope.cancel()
