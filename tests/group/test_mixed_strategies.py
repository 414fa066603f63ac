"""Members with the default strategy in groups with members of other clients, which offer other
assignors."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest

from aiokwire.broker import Broker
from aiokwire.consumer import Consumer
from aiokwire.errors import BrokerError
from aiokwire.group.strategy import OWNS
from aiokwire.group.subscription_format import decode_subscription
from aiokwire.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from aiokwire.protocol.messages.sync_group import SyncGroupRequest
from aiokwire.testing.plugin import kafka_broker
from tests.consumer.groups import RecordingListener, assigned, fill, member, t, until

__all__ = ["kafka_broker"]

Reader = Consumer[bytes, bytes]
ALONE = "aiokwire-cooperative-sticky"
# The default assignors of other clients. An aiokwire member with such a list behaves like them.
OTHERS: dict[str, Any] = {
    "aiokafka": "roundrobin",
    "kafka-python": ["range", "roundrobin"],
    "librdkafka": ["range", "roundrobin"],
    "Java": ["range", "cooperative-sticky"],
    "cooperative": "cooperative-sticky",
}
EAGER = {name: offered for name, offered in OTHERS.items() if name not in ("Java", "cooperative")}


@pytest.fixture
def kafka_broker_options() -> dict[str, Any]:
    return {"topics": {"t": 4}, "auto_create_topics": False}


def other(broker: Broker, name: str, **options: Any) -> Reader:
    return member(broker, partition_assignment_strategy=OTHERS[name], **options)


async def shared(*members: Reader) -> None:
    """Wait until they share the topic."""

    def check() -> bool:
        owned = [tp for one in members for tp in one.assignment]
        return all(one.assignment for one in members) and sorted(owned) == sorted(t(0, 1, 2, 3))

    await until(check)


def used(broker: Broker) -> str | None:
    """The assignor of the last generation that was synchronized."""
    return broker.journal.requests(SyncGroupRequest)[-1].protocol_name


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


@pytest.mark.parametrize("name", OTHERS)
async def test_a_default_member_joins_a_group_of_any_other_client(kafka_broker: Broker, name: str) -> None:
    """Also groups of eager members, without INCONSISTENT_GROUP_PROTOCOL."""
    async with other(kafka_broker, name) as first:
        await assigned(first, 0, 1, 2, 3)
        async with member(kafka_broker) as second:
            await shared(first, second)
            await fill(kafka_broker, 4)
            seen = [await reader.getone(timeout=5) for reader in (first, second) for _ in range(20)]
            assert len({(record.partition, record.offset) for record in seen}) == 40
        await assigned(first, 0, 1, 2, 3)


@pytest.mark.parametrize("name", OTHERS)
async def test_any_other_client_joins_a_group_of_default_members(kafka_broker: Broker, name: str) -> None:
    async with member(kafka_broker) as first, member(kafka_broker) as second:
        await shared(first, second)
        async with other(kafka_broker, name) as third:
            await shared(first, second, third)
            await fill(kafka_broker, 4)
            seen = 0
            with anyio.fail_after(5):
                while seen < 40:
                    for reader in (first, second, third):
                        seen += len(await reader.getmany(timeout=0.01))
        await shared(first, second)
        await until(lambda: used(kafka_broker) == ALONE)


async def test_default_members_keep_partitions_and_rebalance_once(kafka_broker: Broker) -> None:
    listener = RecordingListener()
    async with member(kafka_broker, listener=listener) as first:
        await assigned(first, 0, 1, 2, 3)
        async with member(kafka_broker) as second:
            await shared(first, second)
            await until(lambda: kafka_broker.faults.group("g").state == "Stable")
            assert listener.events == [("assigned", t(0, 1, 2, 3)), ("revoked", set(second.assignment))]
            generation = kafka_broker.faults.group("g").generation
            await anyio.sleep(0.1)
            assert kafka_broker.faults.group("g").generation == generation <= 4
            assert used(kafka_broker) == ALONE


@pytest.mark.parametrize("name", EAGER)
async def test_the_switch_to_an_eager_assignor_is_logged_once_and_no_partition_has_two_owners(
    kafka_broker: Broker, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    owners: dict[object, object] = {}

    class Owns(RecordingListener):
        async def assigned(self, partitions: Any) -> None:
            for tp in partitions:
                assert owners.setdefault(tp, self) is self

        async def revoked(self, partitions: Any) -> None:
            await anyio.lowlevel.checkpoint()
            for tp in partitions:
                assert owners.pop(tp) is self

        async def lost(self, partitions: Any) -> None:
            raise AssertionError(f"lost {partitions}")

    async with member(kafka_broker, listener=Owns()) as first, member(kafka_broker, listener=Owns()) as second:
        await shared(first, second)
        for _ in range(3):
            async with other(kafka_broker, name, listener=Owns()) as third:
                await shared(first, second, third)
                assert used(kafka_broker) in ("range", "roundrobin")
                kafka_broker.faults.rebalance("g")
                await shared(first, second, third)
            await until(lambda: used(kafka_broker) == ALONE)
            await shared(first, second)
        for reader in (first, second):
            assert await reader.getmany(timeout=0) == []
    logged = [message for message in warnings(caplog) if "not all members offer cooperative-sticky" in message]
    assert len(logged) == 6, "one per member and switch"


async def test_a_member_beside_foreign_cooperative_ones_revokes_its_partitions_before_an_eager_join(
    kafka_broker: Broker,
) -> None:
    """Their leader would assign partitions that this member still owns."""
    listener = RecordingListener()
    async with other(kafka_broker, "cooperative") as foreign, member(kafka_broker, listener=listener) as ours:
        await shared(foreign, ours)
        kafka_broker.faults.rebalance("g")
        await until(lambda: kafka_broker.faults.group("g").state == "Stable")
        joins = [one for one in kafka_broker.journal.requests(JoinGroupRequest) if len(one.protocols) == 2]
        assert {protocol.name for one in joins for protocol in one.protocols} == {ALONE, "cooperative-sticky"}
        await foreign.close()
        await assigned(ours, 0, 1, 2, 3)
        await until(lambda: used(kafka_broker) == ALONE)
        async with other(kafka_broker, "librdkafka") as eager:
            await shared(ours, eager)


async def test_a_member_whose_new_leader_is_unknown_drops_its_partitions_at_once(kafka_broker: Broker) -> None:
    """The leader died while an eager member joined, which now leads and assigns partitions of this
    member."""
    listener = RecordingListener()

    def led_by_a_stranger(request: JoinGroupRequest) -> JoinGroupResponse:
        return JoinGroupResponse(
            generation_id=2,
            protocol_type="consumer",
            protocol_name="roundrobin",
            leader="stranger",
            member_id=request.member_id,
        )

    async with member(kafka_broker, listener=listener) as ours:
        await assigned(ours, 0, 1, 2, 3)
        rule = kafka_broker.faults.on(JoinGroupRequest).respond(led_by_a_stranger)
        kafka_broker.faults.rebalance("g")
        await rule.hit()
        await until(lambda: len(listener.events) == 3)
        await assigned(ours, 0, 1, 2, 3)
        everything = t(0, 1, 2, 3)
        assert listener.events == [("assigned", everything), ("lost", everything), ("assigned", everything)]
        after = kafka_broker.journal.requests(JoinGroupRequest)[-1]
        assert OWNS not in {decode_subscription("m", one.metadata).user_data for one in after.protocols}


async def test_without_a_common_assignor_the_error_names_the_offer_the_group_and_the_option(
    kafka_broker: Broker,
) -> None:
    async with member(kafka_broker, partition_assignment_strategy="sticky", client_id="billing-7") as first:
        await assigned(first, 0, 1, 2, 3)
        for offered, named in (("range", "range;"), ("auto", f"{ALONE}, cooperative-sticky, range, roundrobin;")):
            async with member(kafka_broker, partition_assignment_strategy=offered) as second:
                with pytest.raises(BrokerError, match="INCONSISTENT_GROUP_PROTOCOL") as caught:
                    await second.getone(timeout=5)
            message = str(caught.value)
            assert f"this member offers {named}" in message
            assert "'billing-7' at " in message
            assert "use 'sticky'; set partition_assignment_strategy=" in message
        assert first.assignment == t(0, 1, 2, 3)
