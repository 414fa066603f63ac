"""Other clients that log in to the embedded broker: how each receives its certificate or its login.

A client produces VALUES and returns what it consumes in a group.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import ssl
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from aiokwire.broker import Listener, Setup, new_setup
from aiokwire.security import CertificateAuthority, TlsOptions
from aiokwire.testing import ThreadedBroker
from integration.go_programs import built
from integration.interop.peers import unclosed_sockets_ignored
from integration.kafka import libs
from integration.kafka.fetch import java
from integration.kafka.secure_kerberos import REALM, Kerberos
from integration.kafka.secure_oidc import OidcProvider

USER, PASSWORD = "alice", "alice's password, with = and ,"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")
VALUES = [f"value {number}".encode() for number in range(200)] + [b"x" * 500_000]
SECONDS = 60.0
_KRB5 = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"
_JAVA_RECORDS = 20


class Way(NamedTuple):
    """How a client connects; without a mechanism it presents its certificate."""

    protocol: str
    mechanism: str | None = None
    password: str = PASSWORD
    user: str = USER

    def __str__(self) -> str:
        return f"{self.protocol}-{self.mechanism}" if self.mechanism else "mTLS"


WAYS = [Way("SSL"), *(Way(protocol, one) for one in MECHANISMS for protocol in ("SASL_SSL", "SASL_PLAINTEXT"))]


@dataclass(frozen=True)
class Secured:
    """A broker, the files of its clients, and how to reach it."""

    broker: ThreadedBroker
    folder: Path
    oidc: OidcProvider
    kerberos: Kerberos | None

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

    @property
    def realm(self) -> Kerberos:
        """The realm of GSSAPI."""
        assert self.kerberos is not None
        return self.kerberos


@contextmanager
def secured_broker(folder: Path, kerberos: Kerberos | None, **options: Any) -> Iterator[Secured]:
    """Run a broker with a listener for each protocol; GSSAPI needs a running realm."""
    setup, authority = new_setup(), CertificateAuthority.create()
    alice = authority.client(USER)
    (folder / "ca.pem").write_text(setup.authority_pem)
    (folder / "alice.pem").write_text(alice.certificate_pem)
    (folder / "alice-key.pem").write_text(alice.key_pem)
    (folder / "alice-store.pem").write_text(alice.store_pem)
    mechanisms = MECHANISMS if kerberos is not None else MECHANISMS[:-1]
    if kerberos is not None:
        options["sasl_jaas_config"] = f'{_KRB5} keyTab="{kerberos.keytab("broker")}";'
    with OidcProvider({USER: PASSWORD}) as oidc:
        options |= {
            "sasl_oauthbearer_jwks_endpoint_url": oidc.jwks_url,
            "sasl_oauthbearer_expected_audience": "kafka",
            "sasl_oauthbearer_expected_issuer": oidc.issuer,
        }
        listeners = _listeners(setup, authority, mechanisms)
        with ThreadedBroker(listeners=listeners, users={USER: PASSWORD}, journal=100_000, **options) as broker:
            yield Secured(broker, folder, oidc, kerberos)


def _listeners(setup: Setup, authority: CertificateAuthority, mechanisms: Sequence[str]) -> list[Listener]:
    tls = TlsOptions(
        keystore_certificate_chain=setup.tls.keystore_certificate_chain,
        keystore_key=setup.tls.keystore_key,
        truststore_certificates=authority.certificate_pem,
    )
    return [
        Listener(protocol="SASL_SSL", mechanisms=mechanisms, tls=tls),
        Listener(protocol="SASL_PLAINTEXT", mechanisms=mechanisms),
        Listener(protocol="SSL", tls=tls, client_auth="required"),
    ]


# --- Python clients ---------------------------------------------------------------------------------------------------


def aiokafka(secured: Secured, topic: str, way: Way) -> list[bytes | None]:
    async def run() -> list[bytes | None]:
        from aiokafka import AIOKafkaConsumer, AIOKafkaProducer  # type: ignore[import-untyped]  # it has no types

        options = {"bootstrap_servers": secured.address(way.protocol), **_python_options(secured, way)}
        options["ssl_context"] = _context(secured, way)
        if way.mechanism == "OAUTHBEARER":
            options["sasl_oauth_token_provider"] = _aiokafka_tokens(secured, way)
        async with AIOKafkaProducer(**options) as producer:
            for value in VALUES:
                await producer.send(topic, value)
        async with AIOKafkaConsumer(topic, auto_offset_reset="earliest", group_id=f"g-{topic}", **options) as consumer:
            return [(await consumer.getone()).value for _ in VALUES]

    return asyncio.run(run())


def _aiokafka_tokens(secured: Secured, way: Way) -> object:
    from aiokafka.abc import AbstractTokenProvider  # type: ignore[import-untyped]  # it has no types

    class Tokens(AbstractTokenProvider):  # type: ignore[misc]  # it has no types
        async def token(self) -> str:
            return secured.oidc.token(way.user)

    return Tokens()


def _context(secured: Secured, way: Way) -> ssl.SSLContext | None:
    if not way.protocol.endswith("SSL"):
        return None
    context = ssl.create_default_context(cafile=secured.ca)
    if way.mechanism is None:
        context.load_cert_chain(secured.file("alice.pem"), secured.file("alice-key.pem"))
    return context


def _python_options(secured: Secured, way: Way) -> dict[str, Any]:
    options = {"security_protocol": way.protocol}
    if way.mechanism is None:
        return options
    options["sasl_mechanism"] = way.mechanism
    if way.mechanism == "GSSAPI":  # the ticket is in the cache
        return options | {"sasl_kerberos_service_name": "kafka", "sasl_kerberos_domain_name": "localhost"}
    if way.mechanism == "OAUTHBEARER":
        return options
    return options | {"sasl_plain_username": way.user, "sasl_plain_password": way.password}


@unclosed_sockets_ignored()
def kafka_python(secured: Secured, topic: str, way: Way) -> list[bytes | None]:
    from kafka import KafkaConsumer, KafkaProducer  # type: ignore[import-untyped]  # it has no types

    options = {"bootstrap_servers": secured.address(way.protocol), **_python_options(secured, way)}
    if way.protocol.endswith("SSL"):
        options["ssl_context"] = _context(secured, way)
    if way.mechanism == "OAUTHBEARER":
        options["sasl_oauth_token_provider"] = _kafka_python_tokens(secured, way)
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


def _kafka_python_tokens(secured: Secured, way: Way) -> object:
    from kafka.net.sasl.oauth import AbstractTokenProvider  # type: ignore[import-untyped]  # it has no types

    class Tokens(AbstractTokenProvider):  # type: ignore[misc]  # it has no types
        def token(self) -> str:
            return secured.oidc.token(way.user)

    return Tokens()


# --- librdkafka -------------------------------------------------------------------------------------------------------


def librdkafka(secured: Secured, topic: str, way: Way) -> list[bytes | None]:
    from confluent_kafka import Consumer, Producer

    options = librdkafka_options(secured, way)
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


def librdkafka_options(secured: Secured, way: Way) -> dict[str, Any]:
    options: dict[str, Any] = {"bootstrap.servers": secured.address(way.protocol), "security.protocol": way.protocol}
    if way.protocol.endswith("SSL"):
        options["ssl.ca.location"] = secured.ca
    if way.mechanism is None:
        return options | {
            "ssl.certificate.location": secured.file("alice.pem"),
            "ssl.key.location": secured.file("alice-key.pem"),
        }
    options["sasl.mechanism"] = way.mechanism
    if way.mechanism == "OAUTHBEARER":
        return options | {
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": secured.oidc.token_url,
            "sasl.oauthbearer.client.id": way.user,
            "sasl.oauthbearer.client.secret": way.password,
            "sasl.oauthbearer.scope": "kafka",
        }
    return options | {"sasl.username": way.user, "sasl.password": way.password}


# --- franz-go ---------------------------------------------------------------------------------------------------------


def franz_go(secured: Secured, topic: str, way: Way) -> list[bytes | None]:
    job: dict[str, Any] = {
        "Bootstrap": secured.address(way.protocol),
        "TLS": way.protocol.endswith("SSL"),
        "CAFile": secured.ca,
        "Mechanism": way.mechanism or "",
        "Username": way.user,
        "Password": way.password,
        "Topic": topic,
        "Values": [base64.b64encode(value).decode() for value in VALUES],
    }
    if way.mechanism is None:
        job |= {"CertFile": secured.file("alice.pem"), "KeyFile": secured.file("alice-key.pem")}
    elif way.mechanism == "OAUTHBEARER":
        job["Token"] = secured.oidc.token(way.user)
    elif way.mechanism == "GSSAPI":
        realm = secured.realm
        job |= {"Keytab": str(realm.keytab(way.user)), "Realm": REALM, "Krb5Conf": str(realm.config)}
    program = built(Path(__file__).with_name("go"), "interop/franz-go")
    done = subprocess.run([program], input=json.dumps(job), capture_output=True, text=True, timeout=90, check=False)
    assert not done.returncode, done.stderr
    return [base64.b64decode(value) for value in json.loads(done.stdout)]


CLIENTS: list[Callable[[Secured, str, Way], list[bytes | None]]] = [aiokafka, kafka_python, librdkafka, franz_go]


# --- Java -------------------------------------------------------------------------------------------------------------


def java_properties(secured: Secured, way: Way) -> str:
    """Return the path of a properties file of the Java client."""
    lines = [f"bootstrap.servers={secured.address(way.protocol)}", f"security.protocol={way.protocol}"]
    lines += ["ssl.truststore.type=PEM", f"ssl.truststore.location={secured.ca}"]
    if way.mechanism is None:
        lines += ["ssl.keystore.type=PEM", f"ssl.keystore.location={secured.file('alice-store.pem')}"]
    else:
        lines += [f"sasl.mechanism={way.mechanism}", f"sasl.jaas.config={_java_login(secured, way)}"]
    if way.mechanism == "OAUTHBEARER":
        handler = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
        lines.append(f"sasl.login.callback.handler.class={handler}")
        lines.append(f"sasl.oauthbearer.token.endpoint.url={secured.oidc.token_url}")
    if way.mechanism == "GSSAPI":
        lines.append("sasl.kerberos.service.name=kafka")
    path = secured.folder / f"{way}.properties"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def _java_login(secured: Secured, way: Way) -> str:
    if way.mechanism == "GSSAPI":
        return f'{_KRB5} keyTab="{secured.realm.keytab(way.user)}" principal="{way.user}@{REALM}";'
    package = "org.apache.kafka.common.security"
    if way.mechanism == "OAUTHBEARER":
        options = f'clientId="{way.user}" clientSecret="{way.password}" scope="kafka"'
        return f"{package}.oauthbearer.OAuthBearerLoginModule required {options};"
    module = "plain.PlainLoginModule" if way.mechanism == "PLAIN" else "scram.ScramLoginModule"
    return f'{package}.{module} required username="{way.user}" password="{way.password}";'


def java_logins(secured: Secured, ways: Sequence[Way], topics: Sequence[str]) -> dict[Way, str]:
    """Let Java's clients produce and consume in each way in one JVM; return their results."""
    jvm = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    jvm.append(f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={secured.oidc.token_url}")
    if secured.kerberos is not None:
        jvm.append(f"-Djava.security.krb5.conf={secured.kerberos.config}")
    pairs = [part for way, topic in zip(ways, topics, strict=True) for part in (java_properties(secured, way), topic)]
    source = str(Path(__file__).with_name("Logins.java"))
    command = [java(), *jvm, "-cp", f"{libs('4.3.1')}/*", source, str(_JAVA_RECORDS), *pairs]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False, env=dict(os.environ))
    assert not done.returncode, done.stderr[-2000:]
    return dict(zip(ways, done.stdout.splitlines(), strict=True))


JAVA_ANSWER = " ".join(f"value-{number}" for number in range(_JAVA_RECORDS))
