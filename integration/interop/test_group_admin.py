"""Our admin client and Kafka's group tool on the same groups of Java consumers."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import pytest

from aiokwire import Admin, ErrorCode, InvalidRequestError, Producer, TopicPartition
from aiokwire.admin import ResetTo
from integration.conftest import PARTITIONS, BrokerUnderTest
from integration.interop.verifiable import VerifiableConsumer, until
from integration.kafka import JavaTools

T = TypeVar("T")
Java = Callable[[BrokerUnderTest], JavaTools]

PROTOCOLS = ("classic", "consumer")
EACH = 25  # records in each partition
MAIN = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


class Group:
    """A topic with records, and a unique group name."""

    def __init__(self, broker: BrokerUnderTest, tools: JavaTools, protocol: str) -> None:
        self.name = f"g-{uuid.uuid4().hex[:10]}"
        self.topic = broker.create("in")
        self.every = [TopicPartition(self.topic, number) for number in range(PARTITIONS)]
        self.protocol = protocol
        self._broker = broker
        self._tools = tools
        self.ask(self._fill)

    async def _fill(self, _admin: Admin) -> None:
        async with Producer(self._broker.bootstrap_servers) as producer:
            for number in range(PARTITIONS * EACH):
                await producer.submit(self.topic, b"value", partition=number % PARTITIONS)

    def ask(self, question: Callable[[Admin], Coroutine[Any, Any, T]]) -> T:
        """Run a call of our admin client."""

        async def main() -> T:
            async with Admin(self._broker.bootstrap_servers) as admin:
                return await question(admin)

        return asyncio.run(main())

    def tool(self, *arguments: str) -> str:
        """Run kafka-consumer-groups, for this group unless it lists groups."""
        where = ["--bootstrap-server", self._broker.bootstrap_servers]
        if "--list" not in arguments:
            where += ["--group", self.name]
        done = self._tools.run(MAIN, *where, *arguments).checked()
        assert "Error" not in done.stdout + done.stderr, done.stdout + done.stderr
        return done.stdout

    def rows(self) -> list[list[str]]:
        """Return the offsets of the group as the tool prints them."""
        lines = [line.split() for line in self.tool("--describe").splitlines() if line.strip()]
        head = next(index for index, line in enumerate(lines) if line[0] == "GROUP")
        return sorted(lines[head + 1 :], key=lambda row: row[2])

    def committed(self) -> dict[int, int]:
        """Return the committed offsets by partition, from the tool."""
        return {int(row[2]): int(row[3]) for row in self.rows()}

    def member(self) -> VerifiableConsumer:
        return VerifiableConsumer(
            self._broker.bootstrap_servers, self.topic, self.name, "--group-protocol", self.protocol
        )

    def read_all(self) -> None:
        """Read everything as a member, commit and leave."""
        consumer = self.member()
        try:
            until(lambda: consumer.consumed == PARTITIONS * EACH, "consumed", consumer)
        finally:
            consumer.stop()


@pytest.fixture(params=PROTOCOLS)
def group(request: pytest.FixtureRequest, modern_broker: BrokerUnderTest, java: Java) -> Group:
    """A group of either protocol."""
    return Group(modern_broker, java(modern_broker), request.param)


def test_the_admin_client_and_the_tool_describe_the_same_members(group: Group) -> None:
    with ExitStack() as stack:
        members = [group.member(), group.member()]
        for one in members:
            stack.callback(one.kill)

        def shared() -> bool:
            return all(len(one.owned) == 2 for one in members) and members[0].owned.isdisjoint(members[1].owned)

        until(shared, "together", *members)
        described = group.ask(lambda admin: admin.describe_group(group.name))
        assert (described.type, described.state, len(described.members)) == (group.protocol, "Stable", 2)
        ours = sorted(sorted(tp.partition for tp in one.assignment) for one in described.members)
        assert ours == sorted(sorted(one.owned) for one in members)
        theirs = {int(row[2]): row[6] for row in group.rows()}
        assert theirs == {tp.partition: one.member_id for one in described.members for tp in one.assignment}
        listed = group.ask(lambda admin: admin.list_groups(types=[group.protocol], states=["Stable"]))
        assert group.name in [one.group_id for one in listed]
        lag = group.ask(lambda admin: admin.group_lag(group.name))
        assert sorted(lag) == group.every
        assert {one.end for one in lag.values()} == {EACH}
        with pytest.raises(InvalidRequestError) as refused:
            group.ask(lambda admin: admin.reset_group_offsets(group.name, ResetTo.earliest()))
        assert refused.value.code is ErrorCode.NON_EMPTY_GROUP
        for one in members:
            one.stop()
        stack.pop_all()


def test_the_tool_shows_the_offsets_that_the_admin_client_resets(group: Group, tmp_path: Path) -> None:
    group.read_all()
    lag = group.ask(lambda admin: admin.group_lag(group.name))
    assert {tp.partition: (one.end, one.lag) for tp, one in lag.items()} == dict.fromkeys(range(PARTITIONS), (EACH, 0))
    group.ask(lambda admin: admin.reset_group_offsets(group.name, ResetTo.shift(-5)))
    assert group.committed() == dict.fromkeys(range(PARTITIONS), EACH - 5)
    group.ask(lambda admin: admin.reset_group_offsets(group.name, ResetTo.earliest(), [group.every[2]]))
    assert group.committed() == {0: EACH - 5, 1: EACH - 5, 2: 0, 3: EACH - 5}
    plan = tmp_path / "plan.csv"
    changes = group.ask(lambda admin: admin.reset_group_offsets(group.name, ResetTo.latest(), validate_only=True))
    plan.write_text("".join(f"{tp.topic},{tp.partition},{change.after}\n" for tp, change in changes.items()))
    group.tool("--reset-offsets", "--from-file", str(plan), "--execute")
    offsets = group.ask(lambda admin: admin.list_group_offsets(group.name, require_stable=True))
    assert {tp.partition: one.offset for tp, one in offsets.items()} == dict.fromkeys(range(PARTITIONS), EACH)


def test_the_tool_does_not_list_what_the_admin_client_deleted(group: Group) -> None:
    group.read_all()
    forgotten = group.ask(lambda admin: admin.delete_group_offsets(group.name, group.every[:2]))
    assert list(forgotten.check()) == group.every[:2]
    assert sorted(group.committed()) == [2, 3]
    group.ask(lambda admin: admin.delete_group(group.name))
    assert not re.search(rf"^{group.name}$", group.tool("--list"), re.MULTILINE)
    with pytest.raises(InvalidRequestError) as gone:
        group.ask(lambda admin: admin.describe_group(group.name))
    assert gone.value.code is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_removed_member_joins_again(group: Group) -> None:
    consumer = group.member()
    try:
        until(lambda: consumer.consumed == PARTITIONS * EACH, "consumed", consumer)
        before = group.ask(lambda admin: admin.describe_group(group.name))
        removed = group.ask(lambda admin: admin.remove_members(group.name, reason="a test"))
        assert list(removed.check()) == [one.member_id for one in before.members]
        seen = len(consumer.events)

        def again() -> bool:
            names = [event["name"] for event in consumer.events[seen:]]
            return "partitions_assigned" in names

        until(again, "assigned again", consumer)
    finally:
        consumer.stop()
