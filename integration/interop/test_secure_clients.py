"""Other clients log in to the embedded broker: TLS, clients' certificates, SASL, sessions."""

from __future__ import annotations

import asyncio
import ssl
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from aiokwire.broker import Listener, Setup, new_setup
from aiokwire.protocol import ApiKey
from aiokwire.security import CertificateAuthority, TlsOptions
from aiokwire.testing import ThreadedBroker
from integration.kafka import JavaTools

USER, PASSWORD = "alice", "alice's password, with = and ,"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
WAYS = [(protocol, mechanism) for protocol in ("SASL_SSL", "SASL_PLAINTEXT") for mechanism in MECHANISMS]
VALUES = [f"value {number}".encode() for number in range(200)] + [b"x" * 500_000]
SECONDS = 60.0


@dataclass(frozen=True)
class Secured:
    """A broker, the files of its clients, and how to reach it."""

    broker: ThreadedBroker
    folder: Path

    def address(self, protocol: str) -> str:
        """Return the address of a listener."""
        address: str = self.broker.address_of(protocol)
        return address

    @property
    def ca(self) -> str:
        """The truststore."""
        return str(self.folder / "ca.pem")

    def file(self, name: str) -> str:
        """Return the path of a file of the client."""
        return str(self.folder / name)


def _listeners(setup: Setup, authority: CertificateAuthority) -> list[Listener]:
    tls = TlsOptions(
        keystore_certificate_chain=setup.tls.keystore_certificate_chain,
        keystore_key=setup.tls.keystore_key,
        truststore_certificates=authority.certificate_pem,
    )
    return [
        Listener(protocol="SASL_SSL", mechanisms=MECHANISMS, tls=tls),
        Listener(protocol="SASL_PLAINTEXT", mechanisms=MECHANISMS),
        Listener(protocol="SSL", tls=tls, client_auth="required"),
    ]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A broker with three listeners."""
    folder = tmp_path_factory.mktemp("secure")
    setup, authority = new_setup(), CertificateAuthority.create()
    alice = authority.client(USER)
    (folder / "ca.pem").write_text(setup.authority_pem)
    (folder / "alice.pem").write_text(alice.certificate_pem)
    (folder / "alice-key.pem").write_text(alice.key_pem)
    (folder / "alice-store.pem").write_text(alice.store_pem)
    options: dict[str, Any] = {"users": {USER: PASSWORD}, "connections_max_reauth_ms": 2000, "journal": 100_000}
    with ThreadedBroker(listeners=_listeners(setup, authority), **options) as broker:
        yield Secured(broker, folder)


def new_topic(secured: Secured) -> str:
    """Create a topic with one partition."""
    name = f"t-{uuid.uuid4().hex[:10]}"
    secured.broker.create_topic(name, 1)
    return name


# --- clients: each produces VALUES and returns what it consumes -------------------------------------------------------


class Way(NamedTuple):
    """How a client connects; without a mechanism it presents its certificate."""

    protocol: str
    mechanism: str | None = None
    password: str = PASSWORD
    user: str = USER


def aiokafka(secured: Secured, topic: str, way: Way) -> list[bytes | None]:
    async def run() -> list[bytes | None]:
        from aiokafka import AIOKafkaConsumer, AIOKafkaProducer  # type: ignore[import-untyped]  # it has no types

        options = {"bootstrap_servers": secured.address(way.protocol), **_python_options(secured, way)}
        options["ssl_context"] = _context(secured, way)
        async with AIOKafkaProducer(**options) as producer:
            for value in VALUES:
                await producer.send(topic, value)
        async with AIOKafkaConsumer(topic, auto_offset_reset="earliest", group_id=f"g-{topic}", **options) as consumer:
            return [(await consumer.getone()).value for _ in VALUES]

    return asyncio.run(run())


def _context(secured: Secured, way: Way) -> ssl.SSLContext | None:
    if not way.protocol.endswith("SSL"):
        return None
    context = ssl.create_default_context(cafile=secured.ca)
    if way.mechanism is None:
        context.load_cert_chain(secured.file("alice.pem"), secured.file("alice-key.pem"))
    return context


def _python_options(secured: Secured, way: Way) -> dict[str, Any]:
    if way.mechanism is None:
        return {"security_protocol": way.protocol}
    return {
        "security_protocol": way.protocol,
        "sasl_mechanism": way.mechanism,
        "sasl_plain_username": way.user,
        "sasl_plain_password": way.password,
    }


def kafka_python(secured: Secured, topic: str, way: Way) -> list[bytes | None]:
    from kafka import KafkaConsumer, KafkaProducer  # type: ignore[import-untyped]  # it has no types

    options = {"bootstrap_servers": secured.address(way.protocol), **_python_options(secured, way)}
    if way.protocol.endswith("SSL"):
        options["ssl_context"] = _context(secured, way)
    producer = KafkaProducer(**options)
    for value in VALUES:
        producer.send(topic, value)
    producer.flush(SECONDS)
    producer.close()
    consumer = KafkaConsumer(
        topic, auto_offset_reset="earliest", group_id=f"g-{topic}", consumer_timeout_ms=20_000, **options
    )
    try:
        return [record.value for _, record in zip(VALUES, consumer, strict=False)]
    finally:
        consumer.close()


def librdkafka(secured: Secured, topic: str, way: Way) -> list[bytes | None]:
    from confluent_kafka import Consumer, Producer

    options = _librdkafka_options(secured, way)
    producer = Producer(options)
    for value in VALUES:
        producer.produce(topic, value)
    assert not producer.flush(SECONDS)
    consumer = Consumer({**options, "group.id": f"g-{topic}", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found: list[bytes | None] = []
    try:
        while len(found) < len(VALUES):
            message = consumer.poll(SECONDS)
            assert message is not None
            assert message.error() is None
            found.append(message.value())
    finally:
        consumer.close()
    return found


def _librdkafka_options(secured: Secured, way: Way) -> dict[str, Any]:
    options: dict[str, Any] = {"bootstrap.servers": secured.address(way.protocol), "security.protocol": way.protocol}
    if way.protocol.endswith("SSL"):
        options["ssl.ca.location"] = secured.ca
    if way.mechanism is None:
        options |= {
            "ssl.certificate.location": secured.file("alice.pem"),
            "ssl.key.location": secured.file("alice-key.pem"),
        }
    else:
        options |= {"sasl.mechanism": way.mechanism, "sasl.username": way.user, "sasl.password": way.password}
    return options


CLIENTS = [aiokafka, kafka_python, librdkafka]
Client = Callable[[Secured, str, Way], list[bytes | None]]


@pytest.mark.parametrize(("protocol", "mechanism"), WAYS)
@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)
def test_a_client_logs_in_produces_and_consumes(
    secured: Secured, client: Client, protocol: str, mechanism: str
) -> None:
    assert client(secured, new_topic(secured), Way(protocol, mechanism)) == VALUES


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)
def test_a_client_presents_its_certificate(secured: Secured, client: Client) -> None:
    assert client(secured, new_topic(secured), Way("SSL")) == VALUES


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka_reports_a_wrong_password(secured: Secured, mechanism: str) -> None:
    from confluent_kafka.admin import AdminClient

    errors: list[Any] = []
    way = Way("SASL_SSL", mechanism, password="wrong")
    options: dict[str, Any] = {**_librdkafka_options(secured, way), "error_cb": errors.append, "log_level": 0}
    client = AdminClient(options)
    for _ in range(int(SECONDS * 10)):
        if not errors:
            client.poll(0.1)
    assert "_AUTHENTICATION" in errors[0].name()


# --- sessions ---------------------------------------------------------------------------------------------------------


def test_librdkafka_renews_its_session_while_it_produces(secured: Secured) -> None:
    from confluent_kafka import Producer

    failures: list[Any] = []
    topic = new_topic(secured)
    options = _librdkafka_options(secured, Way("SASL_SSL", "SCRAM-SHA-256"))
    producer = Producer({**options, "linger.ms": 1, "error_cb": failures.append})
    clock, count = threading.Event(), 1000

    def on_delivery(error: object, _record: object) -> None:
        if error is not None:
            failures.append(error)

    for number in range(count):  # 5 seconds: two sessions
        producer.produce(topic, f"{number}".encode(), on_delivery=on_delivery)
        producer.poll(0)
        clock.wait(0.005)
    assert not producer.flush(SECONDS)
    assert not failures
    assert [one.value for one in secured.broker.records(topic)] == [f"{number}".encode() for number in range(count)]


# --- Java -------------------------------------------------------------------------------------------------------------


def _java_properties(secured: Secured, way: Way) -> str:
    lines = [f"security.protocol={way.protocol}", "ssl.truststore.type=PEM", f"ssl.truststore.location={secured.ca}"]
    if way.mechanism is None:
        lines += ["ssl.keystore.type=PEM", f"ssl.keystore.location={secured.file('alice-store.pem')}"]
    else:
        module = "plain.PlainLoginModule" if way.mechanism == "PLAIN" else "scram.ScramLoginModule"
        login = f'org.apache.kafka.common.security.{module} required username="{way.user}" password="{way.password}";'
        lines += [f"sasl.mechanism={way.mechanism}", f"sasl.jaas.config={login}"]
    name = f"{way.protocol}-{way.mechanism}.properties"
    (secured.folder / name).write_text("\n".join(lines) + "\n")
    return secured.file(name)


JAVA_WAYS = [Way("SASL_SSL", "SCRAM-SHA-512"), Way("SASL_PLAINTEXT", "PLAIN"), Way("SSL")]


@pytest.mark.parametrize("way", JAVA_WAYS, ids=str)
@pytest.mark.usefixtures("java")
def test_the_java_client_logs_in(secured: Secured, way: Way) -> None:
    config, topic = ("--command-config", _java_properties(secured, way)), new_topic(secured)
    tools = JavaTools(secured.address(way.protocol))
    tools.console_producer(topic, ["a", "b"], *config)
    assert tools.console_consumer(topic, 0, 2, *config) == ["a", "b"]


@pytest.mark.usefixtures("java")
def test_the_java_client_stores_a_user(secured: Secured) -> None:
    address, way = secured.address("SASL_SSL"), Way("SASL_SSL", "SCRAM-SHA-512")
    start = ("--bootstrap-server", address, "--command-config", _java_properties(secured, way))
    user = ("--entity-type", "users", "--entity-name", "bob")

    def configs(*arguments: str) -> str:
        return JavaTools(address).run("kafka.admin.ConfigCommand", *start, *arguments, *user).checked().stdout

    configs("--alter", "--add-config", "SCRAM-SHA-256=[iterations=4096,password=bobs]")
    assert "SCRAM-SHA-256=iterations=4096" in configs("--describe")
    assert aiokafka(secured, new_topic(secured), Way("SASL_SSL", "SCRAM-SHA-256", "bobs", "bob")) == VALUES
    configs("--alter", "--delete-config", "SCRAM-SHA-256")
    assert "SCRAM-SHA-256" not in configs("--describe")


@pytest.mark.usefixtures("java")
def test_the_java_producer_renews_its_session(secured: Secured) -> None:
    way, topic = Way("SASL_SSL", "SCRAM-SHA-512"), new_topic(secured)
    address, properties = secured.address("SASL_SSL"), _java_properties(secured, way)
    fixed = ("--topic", topic, "--num-records", "7000", "--record-size", "100", "--throughput", "1000")
    given = ("--bootstrap-server", address, "--command-config", properties)
    secured.broker.journal.clear()
    done = JavaTools(address).run("org.apache.kafka.tools.ProducerPerformance", *fixed, *given).checked()
    assert "7000 records sent" in done.stdout
    assert "WARN" not in done.stdout + done.stderr
    assert len(secured.broker.records(topic)) == 7000
    logins = [entry.connection for entry in secured.broker.journal.of(ApiKey.SASL_HANDSHAKE)]
    assert len(logins) > len(set(logins)), "a connection authenticated again"
