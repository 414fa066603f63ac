"""Every protocol and mechanism: produce, consume in a group, transactions, admin; on both loops."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import anyio
import pytest

from aiokwire import Admin, Consumer, KafkaError, Producer
from integration.conftest import require_kerberos
from integration.kafka.secure import MECHANISMS, SecureServer
from integration.kafka.secure_files import PASSWORD, Certificates
from integration.scenarios.common import PATIENCE

MECHANISMS_OF = {"embedded": MECHANISMS, "kafka-4.3.1": MECHANISMS, "kafka-0.10.2.2": ("PLAIN",)}


def ways(*names: str) -> list[Any]:
    """Return each broker with each protocol and mechanism that it has."""
    found = []
    for name in names:
        found.append(pytest.param(name, "SSL", "", id=f"{name}-mTLS"))
        for protocol in ("SASL_SSL", "SASL_PLAINTEXT"):
            found += [pytest.param(name, protocol, one, id=f"{name}-{protocol}-{one}") for one in MECHANISMS_OF[name]]
    return found


COUNT = 20


NewBroker = Callable[[str], SecureServer]


async def round_trip(options: dict[str, Any]) -> None:
    """Create a topic, write with and without a transaction, read in a group, describe, delete."""
    topic, group = f"t-{uuid.uuid4().hex[:10]}", f"g-{uuid.uuid4().hex[:10]}"
    async with Admin(**options) as admin:
        await admin.create_topic(topic, 2, replication_factor=1, timeout=PATIENCE)
        await write(topic, options)
        assert await read(topic, group, options) == sorted(b"%d" % number for number in range(2 * COUNT))
        assert group in [one.group_id for one in await admin.list_groups(timeout=PATIENCE)]
        lag = await admin.group_lag(group, timeout=PATIENCE)
        assert {place.topic for place in lag} == {topic}
        await admin.delete_topic(topic, timeout=PATIENCE)


async def write(topic: str, options: dict[str, Any]) -> None:
    """Write records, a committed transaction and an aborted one."""
    async with Producer(**options) as producer:
        for number in range(COUNT):
            await producer.send(topic, b"%d" % number)
    async with Producer(transactional_id=f"x-{topic}", **options) as producer:
        async with producer.transaction():
            for number in range(COUNT, 2 * COUNT):
                await producer.submit(topic, b"%d" % number)
        with suppress(ZeroDivisionError):
            async with producer.transaction():
                await producer.send(topic, b"aborted")
                raise ZeroDivisionError


async def read(
    topic: str, group: str, options: dict[str, Any], *, isolation_level: str = "read_committed"
) -> list[bytes]:
    """Return the committed records, read by a group that commits."""
    found: list[bytes] = []
    reading: dict[str, Any] = {"group_id": group, "auto_offset_reset": "earliest", "isolation_level": isolation_level}
    async with Consumer(topic, **reading, **options) as consumer:
        with anyio.fail_after(PATIENCE):
            while len(found) < 2 * COUNT:
                found += [record.value or b"" for record in await consumer.getmany(timeout=5)]
        await consumer.commit()
    return sorted(found)


@pytest.mark.parametrize(("name", "protocol", "mechanism"), ways("embedded", "kafka-4.3.1"))
async def test_everything_works_by_every_protocol_and_mechanism(
    secure_brokers: NewBroker, name: str, protocol: str, mechanism: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = secure_brokers(name)
    if mechanism == "GSSAPI":
        require_kerberos(broker)
        monkeypatch.setenv("KRB5_CONFIG", str(broker.access.kerberos_config))
    await round_trip(broker.access.options(protocol, mechanism))


FORMATS: dict[str, Callable[[Certificates], dict[str, Any]]] = {
    "PEM files": lambda files: {
        "ssl_certfile": files.path("alice.crt"),
        "ssl_keyfile": files.path("alice.key"),
    },
    "an encrypted key": lambda files: {
        "ssl_certfile": files.path("alice.crt"),
        "ssl_keyfile": files.path("alice.encrypted.key"),
        "ssl_key_password": PASSWORD.reveal(),
    },
    "PEM texts": lambda files: {
        "ssl_keystore_certificate_chain": files.text("alice.crt"),
        "ssl_keystore_key": files.text("alice.key"),
    },
    "PKCS12": lambda files: {
        "ssl_keystore_location": files.path("alice.p12"),
        "ssl_keystore_password": PASSWORD.reveal(),
    },
}
TRUST: dict[str, Callable[[Certificates], dict[str, Any]]] = {
    "PEM text": lambda files: {"ssl_truststore_certificates": files.text("ca.pem")},
    "PKCS12": lambda files: {
        "ssl_truststore_location": files.path("trust.p12"),
        "ssl_truststore_password": PASSWORD.reveal(),
    },
}


@pytest.mark.parametrize("name", FORMATS)
async def test_a_client_certificate_is_read_from_every_format(secure_broker: SecureServer, name: str) -> None:
    access = secure_broker.access
    options = {
        "bootstrap_servers": access.address("SSL"),
        "security_protocol": "SSL",
        "ssl_cafile": access.certificates.path("ca.pem"),
        **FORMATS[name](access.certificates),
    }
    async with Admin(**options) as admin:
        await admin.list_topics(timeout=PATIENCE)


@pytest.mark.parametrize("name", TRUST)
async def test_trusted_certificates_are_read_from_every_format(secure_broker: SecureServer, name: str) -> None:
    options = secure_broker.access.options("SASL_SSL", "PLAIN")
    del options["ssl_cafile"]
    async with Admin(**options, **TRUST[name](secure_broker.access.certificates)) as admin:
        await admin.list_topics(timeout=PATIENCE)


async def test_a_user_without_acls_is_refused_with_the_name_of_the_topic(secure_broker: SecureServer) -> None:
    topic = f"t-{uuid.uuid4().hex[:10]}"
    async with Admin(**secure_broker.access.options("SASL_SSL", "PLAIN")) as admin:
        await admin.create_topic(topic, 1, replication_factor=1, timeout=PATIENCE)
    async with Producer(**secure_broker.access.options("SASL_SSL", "PLAIN", "bob")) as producer:
        with anyio.fail_after(PATIENCE), pytest.raises(KafkaError, match=topic):
            await producer.send(topic, b"value")


@pytest.mark.parametrize(("name", "protocol", "mechanism"), ways("kafka-0.10.2.2"))
async def test_an_old_release_works_with_tls_and_plain(
    secure_brokers: NewBroker, name: str, protocol: str, mechanism: str
) -> None:
    """Use all that the release has: no transactions, configs or deletion of groups."""
    options = secure_brokers(name).access.options(protocol, mechanism)
    topic, group = f"t-{uuid.uuid4().hex[:10]}", f"g-{uuid.uuid4().hex[:10]}"
    values = [b"%d" % number for number in range(2 * COUNT)]
    async with Admin(default_api_timeout_ms=PATIENCE * 1000, **options) as admin:
        created = await admin.create_topic(topic, 2, replication_factor=1)
        assert created.name == topic
        async with Producer(**options) as producer:
            for value in values:
                await producer.send(topic, value)
        assert await read(topic, group, options, isolation_level="read_uncommitted") == sorted(values)
        await check_admin(admin, topic, group)
        await admin.delete_topic(topic)
        await until_gone(admin, topic)


async def check_admin(admin: Admin, topic: str, group: str) -> None:
    """Request everything that the release reports about topics and groups."""
    assert topic in [one.name for one in await admin.list_topics()]
    assert len((await admin.describe_topic(topic)).partitions) == 2
    assert group in [one.group_id for one in await admin.list_groups()]
    (described,) = (await admin.describe_groups([group])).check().values()
    assert described.state == "Empty"
    committed = await admin.list_group_offsets(group)
    assert sum(one.offset for one in committed.values()) == 2 * COUNT
    assert {one.lag for one in (await admin.group_lag(group)).values()} == {0}
    assert (await admin.describe_cluster()).brokers


async def until_gone(admin: Admin, topic: str) -> None:
    """Wait until a topic is deleted, which the release does after its response."""
    with anyio.fail_after(PATIENCE):
        while topic in [one.name for one in await admin.list_topics()]:  # noqa: ASYNC110 - brokers send no event
            await anyio.sleep(0.1)
