"""A limited user with the clients: what ACLs allow works, what they deny is an error at once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from aiokwire import Consumer, Producer
from aiokwire.broker import Broker, Listener
from aiokwire.broker.security import AclOperation, ResourceType
from aiokwire.errors import AuthorizationError
from tests.broker.security.acting import STANDARD, allow

PASSWORD = "alice-secret"


@pytest_asyncio.fixture
async def alice() -> AsyncIterator[dict[str, Any]]:
    """The options of alice: she may use the topic "orders", the group "g", the id "x"."""
    broker = Broker(
        topics={"orders": 1, "secret": 1},
        listeners=[Listener(protocol="SASL_PLAINTEXT", mechanisms=["PLAIN"])],
        users={"alice": PASSWORD},
        authorizer_class_name=STANDARD,
    )
    async with broker:
        assert broker.state.authorizer is not None
        await broker.state.authorizer.create(
            [
                allow(AclOperation.WRITE, ResourceType.TOPIC, "orders"),
                allow(AclOperation.READ, ResourceType.TOPIC, "orders"),
                allow(AclOperation.READ, ResourceType.GROUP, "g"),
                allow(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, "x"),
            ]
        )
        yield {
            "bootstrap_servers": broker.bootstrap_servers,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": "alice",
            "sasl_plain_password": PASSWORD,
        }


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_a_limited_user_writes_and_reads_allowed_topics(alice: dict[str, Any], protocol: str) -> None:
    async with Producer(**alice) as producer:  # idempotent: the right to write to any topic is enough
        await producer.send("orders", b"one")
    async with Producer(**alice, transactional_id="x") as producer, producer.transaction():
        await producer.send("orders", b"two")
    async with Consumer(
        "orders", **alice, group_id="g", auto_offset_reset="earliest", group_protocol=protocol
    ) as consumer:
        records = [await consumer.getone() for _ in range(2)]
        await consumer.commit()
    assert [record.value for record in records] == [b"one", b"two"]


async def test_a_denied_topic_is_an_error_whether_it_exists_or_not(alice: dict[str, Any]) -> None:
    async with Producer(**alice) as producer:
        for topic in ("secret", "missing"):
            with pytest.raises(AuthorizationError, match=f"{topic}.*TOPIC_AUTHORIZATION_FAILED"):
                await producer.send(topic, b"v")


async def test_a_denied_group_is_an_error(alice: dict[str, Any]) -> None:
    with pytest.raises(AuthorizationError, match="GROUP_AUTHORIZATION_FAILED"):
        async with Consumer("orders", **alice, group_id="other") as consumer:
            await consumer.getone()


async def test_a_denied_transactional_id_is_an_error(alice: dict[str, Any]) -> None:
    with pytest.raises(AuthorizationError, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
        async with Producer(**alice, transactional_id="other"):
            pass
