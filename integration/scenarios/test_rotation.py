"""Certificates, passwords and tokens change while clients run: nothing closes, no send fails.

The next connection of each client uses what is new. The broker names the principal of a connection
as the owner of a delegation token that is created over it.
"""

from __future__ import annotations

import ssl
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import anyio.to_thread
import pytest

from aiokwire import Admin, AuthenticationFailed, Consumer, Producer
from aiokwire.admin import AclBinding, AclOperation, AclResourceType, ScramCredentialUpsertion
from aiokwire.hooks import Hooks
from integration.conftest import new_secure_server
from integration.kafka.secure import SecureServer
from integration.scenarios.common import PATIENCE

PARTITIONS = 2
IDLE_MS = 500.0  # after which the connections of an `Admin` close
TOKEN_SECONDS = 12.0
SHORT_TOKEN_SECONDS = 2.0


@pytest.fixture(scope="module", params=["embedded", "kafka-4.3.1"])
def server(request: pytest.FixtureRequest) -> Iterator[SecureServer]:
    """A broker of this module alone, whose certificates change."""
    if request.param not in request.config.getoption("--brokers").split(","):
        pytest.skip("not in --brokers")
    running = new_secure_server(request.param)
    yield running
    running.close()


class Material:
    """What changes: files, a password, and the subject of tokens. `options` has a way for each."""

    def __init__(self, server: SecureServer, scram_user: str) -> None:
        self._access = server.access
        self.scram_user = scram_user
        self.password = "the first password"
        self.subject = "alice"  # of the tokens of those clients whose connections end meanwhile
        self.tokens = 0  # that were fetched for the others, whose user stays: a session keeps its user
        self.certificate = f"client-{uuid.uuid4().hex[:8]}"
        self._access.certificates.issue_client(self.certificate, "alice")

    def token(self) -> str:
        """Return a token of alice."""
        self.tokens += 1
        return self._access.oidc.token("alice", scope="kafka", lifetime=TOKEN_SECONDS)

    def short_token(self) -> str:
        """Return a token of the current subject."""
        return self._access.oidc.token(self.subject, scope="kafka", lifetime=SHORT_TOKEN_SECONDS)

    def options(self) -> dict[str, dict[str, Any]]:
        """Return the options of a client by its way to log in."""
        files, access = self._access.certificates, self._access
        trust = {"ssl_cafile": files.path("ca.pem")}
        sasl = {"bootstrap_servers": access.address("SASL_SSL"), "security_protocol": "SASL_SSL", **trust}
        return {
            "mTLS": {
                "bootstrap_servers": access.address("SSL"),
                "security_protocol": "SSL",
                "ssl_keystore_location": files.path(f"{self.certificate}.store.pem"),
                **trust,
            },
            "SCRAM": sasl
            | {
                "sasl_mechanism": "SCRAM-SHA-512",
                "sasl_plain_username": self.scram_user,
                "sasl_plain_password": lambda: self.password,
            },
            "OAUTHBEARER": sasl | {"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": self.token},
        }


class Connections(Hooks):
    """Counts the connections that were opened and closed."""

    def __init__(self) -> None:
        self.opened = 0
        self.closed: list[Exception | None] = []

    def on_connect(self, node_id: int | None, address: str, elapsed: float) -> None:
        self.opened += 1

    def on_disconnect(self, node_id: int | None, address: str, error: Exception | None) -> None:
        self.closed.append(error)

    def have_ended(self) -> bool:
        """Return whether all connections are closed."""
        return len(self.closed) == self.opened


class Traffic:
    """A producer and a group member by one way, which never stop, and their connections."""

    def __init__(self, topic: str, options: dict[str, Any]) -> None:
        self.connections = Connections()
        self._topic = topic
        self._producer = Producer(hooks=self.connections, **options)
        self._consumer = Consumer(
            topic, group_id=f"g-{topic}", auto_offset_reset="earliest", hooks=self.connections, **options
        )
        self.sent: Counter[bytes] = Counter()
        self.read: Counter[bytes] = Counter()
        self._is_ending = self._has_sent = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Send and read until the end of the block, then read the rest."""
        async with self._producer, self._consumer, anyio.create_task_group() as tasks:
            tasks.start_soon(self._read)
            tasks.start_soon(self._send)
            yield
            self._is_ending = True

    async def _send(self) -> None:
        number = 0
        while not self._is_ending:
            value = b"%d" % number
            await self._producer.send(self._topic, value, partition=number % PARTITIONS)
            self.sent[value] += 1
            number += 1
            await anyio.sleep(0.005)
        self._has_sent = True

    async def _read(self) -> None:
        while not self._has_sent or self.read != self.sent:
            for record in await self._consumer.getmany(timeout=0.2):
                self.read[record.value or b""] += 1
            await self._consumer.commit()

    async def advance(self) -> None:
        """Return when records that are sent from here on were read."""
        target = self.sent.total() + 50
        await until(lambda: self.read.total() >= target)


async def principal(admin: Admin) -> str:
    """Return the principal that the broker has for this client."""
    return (await admin.create_delegation_token(timeout=PATIENCE)).owner


async def certificate_of(address: str) -> str:
    """Return the certificate that a new connection sees."""
    host, _, port = address.rpartition(":")
    return await anyio.to_thread.run_sync(ssl.get_server_certificate, (host, int(port)))


async def test_what_is_renewed_serves_the_next_connection_and_closes_none(server: SecureServer) -> None:
    files, name = server.access.certificates, uuid.uuid4().hex[:8]
    material = Material(server, f"carol-{name}")
    async with AsyncExitStack() as stack:
        boss = await stack.enter_async_context(Admin(**server.access.options("SASL_PLAINTEXT", "PLAIN")))
        topics = {way: f"t-{way}-{name}" for way in material.options()}
        await prepare(boss, material, list(topics.values()))
        options = material.options()
        traffics = {way: Traffic(topic, options[way]) for way, topic in topics.items()}
        idle = {way: Connections() for way in topics}
        special = {"OAUTHBEARER": {"sasl_oauth_token_provider": material.short_token}}
        admins = {
            way: await stack.enter_async_context(
                Admin(hooks=idle[way], connections_max_idle_ms=IDLE_MS, **options[way] | special.get(way, {}))
            )
            for way in topics
        }
        before = {way: await principal(admin) for way, admin in admins.items()}
        assert before == {"mTLS": "User:alice", "SCRAM": f"User:{material.scram_user}", "OAUTHBEARER": "User:alice"}
        for traffic in traffics.values():
            await stack.enter_async_context(traffic.running())
        for traffic in traffics.values():
            await traffic.advance()
        opened = {way: traffic.connections.opened for way, traffic in traffics.items()}
        addresses = [server.access.address(protocol) for protocol in ("SASL_SSL", "SSL")]
        old = [await certificate_of(address) for address in addresses]

        files.trust_next_authority()
        await server.reload_certificates()
        files.renew_broker()
        await server.reload_certificates()
        files.issue_client(material.certificate, "amy")
        files.trust_present_authority()
        material.password, material.subject = "the second password", "tess"
        await store_password(boss, material)
        for traffic in traffics.values():
            await traffic.advance()

        for address, before_it in zip(addresses, old, strict=True):
            await until_replaced(address, before_it)
        for way, admin in admins.items():
            await until(idle[way].have_ended)
            count = idle[way].opened
            assert await principal(admin) == {"mTLS": "User:amy", "OAUTHBEARER": "User:tess"}.get(way, before[way])
            assert idle[way].opened > count
        with pytest.raises(AuthenticationFailed, match="invalid credentials"):
            await Admin(**options["SCRAM"] | {"sasl_plain_password": "the first password"}).start()
        await until(lambda: material.tokens >= 4)  # the second ones of both clients
        for traffic in traffics.values():
            await traffic.advance()
        assert {way: traffic.connections.closed for way, traffic in traffics.items()} == {way: [] for way in topics}
        assert {way: traffic.connections.opened for way, traffic in traffics.items()} == opened
    for traffic in traffics.values():
        assert traffic.read == traffic.sent
        assert set(traffic.read.values()) == {1}


async def prepare(boss: Admin, material: Material, topics: list[str]) -> None:
    """Create topics, and a user of SCRAM who may use them."""
    user = f"User:{material.scram_user}"
    for topic in topics:
        await boss.create_topic(topic, PARTITIONS, replication_factor=1, timeout=PATIENCE)
    rules = [
        *(AclBinding(user, AclOperation.ALL, AclResourceType.TOPIC, topic) for topic in topics),
        *(AclBinding(user, AclOperation.ALL, AclResourceType.GROUP, f"g-{topic}") for topic in topics),
    ]
    (await boss.create_acls(rules, timeout=PATIENCE)).check()
    await store_password(boss, material)


async def store_password(boss: Admin, material: Material) -> None:
    """Store the current password; return when the broker accepts it."""
    change = ScramCredentialUpsertion(material.scram_user, material.password)
    (await boss.alter_user_scram_credentials([change], timeout=PATIENCE)).check()
    with anyio.fail_after(PATIENCE):
        while True:  # Kafka's brokers follow their controller's log
            try:
                async with Admin(**material.options()["SCRAM"]):
                    return
            except AuthenticationFailed:
                await anyio.sleep(0.1)


async def until_replaced(address: str, certificate: str) -> None:
    """Wait until new connections see another certificate."""
    with anyio.fail_after(PATIENCE):
        while await certificate_of(address) == certificate:  # noqa: ASYNC110 - Kafka applies it after its response
            await anyio.sleep(0.1)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that has no event."""
    with anyio.fail_after(PATIENCE):
        while not condition():  # noqa: ASYNC110 - clients send no event
            await anyio.sleep(0.02)
