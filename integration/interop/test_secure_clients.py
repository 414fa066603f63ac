"""Other clients of the secure embedded broker: each login that each has, wrong ones, sessions."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from aiokwire.protocol import ApiKey
from integration.conftest import lacking
from integration.go_programs import has_go
from integration.interop.secure_peers import (
    CLIENTS,
    JAVA_ANSWER,
    SECONDS,
    VALUES,
    WAYS,
    Secured,
    Way,
    aiokafka,
    franz_go,
    java_logins,
    java_properties,
    librdkafka,
    librdkafka_options,
    secured_broker,
)
from integration.kafka import JavaTools, MissingPrerequisite
from integration.kafka.secure_kerberos import Kerberos
from integration.kafka.server import free_port

PASSWORD_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


@pytest.fixture(scope="module")
def kerberos() -> Iterator[Kerberos | str]:
    """A realm with a ticket of alice in the cache of its clients, or why there is none."""
    realm: Kerberos | None = None
    try:
        realm = Kerberos(free_port())
        realm.start()
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("KRB5_CONFIG", str(realm.config))
            environment.setenv("KRB5CCNAME", f"FILE:{realm.cache}")
            realm.log_in("alice")
            yield realm
    except (MissingPrerequisite, ImportError) as missing:
        yield str(missing)
    finally:
        if realm is not None:
            realm.close()


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory, kerberos: Kerberos | str) -> Iterator[Secured]:
    """A broker with three listeners, whose sessions end after two seconds."""
    realm = kerberos if isinstance(kerberos, Kerberos) else None
    with secured_broker(tmp_path_factory.mktemp("secure"), realm, connections_max_reauth_ms=2000) as running:
        yield running


def new_topic(secured: Secured) -> str:
    """Create a topic with one partition."""
    name = f"t-{uuid.uuid4().hex[:10]}"
    secured.broker.create_topic(name, 1)
    return name


# --- every client by every way that it has ----------------------------------------------------------------------------

LACKS = {(librdkafka, "GSSAPI")}  # the wheel of confluent-kafka is built without it
MATRIX = [
    pytest.param(client, way, id=f"{client.__name__}-{way}")
    for client in CLIENTS
    for way in WAYS
    if (client, way.mechanism) not in LACKS
]


@pytest.mark.parametrize(("client", "way"), MATRIX)
def test_a_client_logs_in_produces_and_consumes(
    secured: Secured, kerberos: Kerberos | str, client: Any, way: Way
) -> None:
    if way.mechanism == "GSSAPI" and isinstance(kerberos, str):
        lacking(kerberos)
    if client is franz_go and not has_go():
        lacking("Go 1.25 or newer, which builds the franz-go client")
    assert client(secured, new_topic(secured), way) == VALUES


@pytest.fixture(scope="module")
def java_answers(secured: Secured, java: object) -> dict[Way, str]:
    """The results of Java's clients, for each way."""
    ways = [way for way in WAYS if way.mechanism != "GSSAPI" or secured.kerberos is not None]
    return java_logins(secured, ways, [new_topic(secured) for _ in ways])


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_the_java_client_logs_in_produces_and_consumes(
    java_answers: dict[Way, str], kerberos: Kerberos | str, way: Way
) -> None:
    if way not in java_answers:
        lacking(str(kerberos))
    assert java_answers[way] == JAVA_ANSWER


@pytest.mark.parametrize("mechanism", PASSWORD_MECHANISMS)
def test_librdkafka_reports_a_wrong_password(secured: Secured, mechanism: str) -> None:
    from confluent_kafka.admin import AdminClient

    errors: list[Any] = []
    way = Way("SASL_SSL", mechanism, password="wrong")
    options: dict[str, Any] = {**librdkafka_options(secured, way), "error_cb": errors.append, "log_level": 0}
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
    options = librdkafka_options(secured, Way("SASL_SSL", "SCRAM-SHA-256"))
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


@pytest.mark.usefixtures("java")
def test_the_java_client_stores_a_user(secured: Secured) -> None:
    address, way = secured.address("SASL_SSL"), Way("SASL_SSL", "SCRAM-SHA-512")
    start = ("--bootstrap-server", address, "--command-config", java_properties(secured, way))
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
    address, properties = secured.address("SASL_SSL"), java_properties(secured, way)
    fixed = ("--topic", topic, "--num-records", "7000", "--record-size", "100", "--throughput", "1000")
    given = ("--bootstrap-server", address, "--command-config", properties)
    secured.broker.journal.clear()
    done = JavaTools(address).run("org.apache.kafka.tools.ProducerPerformance", *fixed, *given).checked()
    assert "7000 records sent" in done.stdout
    assert "WARN" not in done.stdout + done.stderr
    assert len(secured.broker.records(topic)) == 7000
    logins = [entry.connection for entry in secured.broker.journal.of(ApiKey.SASL_HANDSHAKE)]
    assert len(logins) > len(set(logins)), "a connection authenticated again"
