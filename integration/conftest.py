"""The scenarios' brokers, each started once per session, and the features of each release.

A broker comes from `AIOKWIRE_BOOTSTRAP`, from Docker if an engine is available, or from a JVM. A
missing requirement fails where CI=true, and is a skip that names it elsewhere. `--brokers
embedded,kafka-4.3.1` limits a run.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import NoReturn

import pytest
import uvloop

from integration.embedded import EmbeddedProcess
from integration.kafka import VERSIONS, JavaTools, KafkaServer, MissingPrerequisite, real_kafka
from integration.kafka.metadata import create_by_asking
from integration.kafka.secure import SecureKafka, SecureServer
from integration.secure_embedded import SecureEmbedded

PARTITIONS = 4  # num.partitions of every broker
EXTERNAL = os.environ.get("AIOKWIRE_BOOTSTRAP")
REAL = ["external"] if EXTERNAL else [f"kafka-{version}" for version in VERSIONS]
ALL = ["embedded", *REAL]
MODERN = [name for name in ALL if name not in ("kafka-0.10.2.2", "kafka-0.8.2.2")]
SECURE = ["embedded", "kafka-4.3.1"]
_TEST_SECONDS = 120

_CODECS = {"kafka-0.8.2.2": ("none", "gzip", "snappy", "lz4"), "kafka-0.10.2.2": ("none", "gzip", "snappy", "lz4")}
_ALL_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True)
class BrokerUnderTest:
    """A running broker and the features of its release."""

    name: str
    server: KafkaServer | None

    @property
    def bootstrap_servers(self) -> str:
        return self.server.bootstrap_servers if self.server is not None else str(EXTERNAL)

    @property
    def codecs(self) -> tuple[str, ...]:
        """The codecs that its message format and release support."""
        return _CODECS.get(self.name, _ALL_CODECS)

    @property
    def has_headers(self) -> bool:
        """Message format 2."""
        return self.name not in _CODECS

    @property
    def has_timestamps(self) -> bool:
        """Message format 1 or 2."""
        return self.name != "kafka-0.8.2.2"

    @property
    def has_admin(self) -> bool:
        """Topics can be created and deleted by request."""
        return self.name != "kafka-0.8.2.2"

    @property
    def has_configs(self) -> bool:
        """Configs and partitions can be changed by request."""
        return self.name not in _CODECS

    @property
    def may_be_killed(self) -> KafkaServer:
        """Its server, for scenarios that kill it; an external broker is never killed."""
        if self.server is None:
            pytest.skip("the broker of AIOKWIRE_BOOTSTRAP must not be killed")
        return self.server

    def create(self, prefix: str = "t") -> str:
        """Create a topic with `PARTITIONS` partitions, each with a leader."""
        name = f"{prefix}-{uuid.uuid4().hex[:10]}"
        create_by_asking(self.bootstrap_servers, name, PARTITIONS)
        return name


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--brokers", default=",".join(ALL), help=f"comma-separated, of {', '.join(ALL)}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize `broker` with all brokers, `modern_broker` without the old releases.

    `secure_broker` are those with TLS, SASL and ACLs.
    """
    chosen = metafunc.config.getoption("--brokers").split(",")
    for fixture, names in (("broker", ALL), ("modern_broker", MODERN), ("secure_broker", SECURE)):
        if fixture in metafunc.fixturenames:
            metafunc.parametrize(fixture, [name for name in names if name in chosen], indirect=True, scope="session")


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Return the loops of a test: both loops have their own TLS."""
    loops: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}
    return loops | {"uvloop": uvloop.new_event_loop} if item.path.name.startswith("test_secure") else loops


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(_TEST_SECONDS))
        if "interop" in item.path.parts:  # ignore warnings of other clients
            item.add_marker(pytest.mark.filterwarnings("ignore::DeprecationWarning"))


@pytest.fixture(scope="session")
def _brokers() -> Iterator[Callable[[str], BrokerUnderTest]]:
    running: dict[str, BrokerUnderTest] = {}

    def get(name: str) -> BrokerUnderTest:
        if name not in running:
            running[name] = _start(name)
        return running[name]

    yield get
    for broker in running.values():
        if broker.server is not None:
            broker.server.close()


def _start(name: str) -> BrokerUnderTest:
    if name == "external":
        return BrokerUnderTest(name, None)
    server = _server(name)
    server.start()
    return BrokerUnderTest(name, server)


def _server(name: str, settings: Mapping[str, object] | None = None) -> KafkaServer:
    if name == "embedded":
        return EmbeddedProcess(settings=settings)
    try:
        named = {each.replace("_", "."): value for each, value in (settings or {}).items()}
        return real_kafka(name.removeprefix("kafka-"), settings=named)
    except MissingPrerequisite as missing:
        lacking(str(missing))


@contextmanager
def broker_with(config: pytest.Config, name: str, settings: Mapping[str, object]) -> Iterator[KafkaServer]:
    """Start a broker for one module, with settings in snake_case.

    Skip it unless `--brokers` names it.
    """
    if name not in config.getoption("--brokers").split(","):
        pytest.skip("not in --brokers")
    with closing(_server(name, settings)) as server:
        server.start()
        yield server


def lacking(what: str) -> NoReturn:
    """Skip a test, or fail it where CI=true, because the machine lacks something."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"missing: {what}")
    pytest.skip(f"missing: {what}")


@pytest.fixture(scope="session")
def broker(request: pytest.FixtureRequest, _brokers: Callable[[str], BrokerUnderTest]) -> BrokerUnderTest:
    """Each broker in turn."""
    return _brokers(request.param)


@pytest.fixture(scope="session")
def modern_broker(request: pytest.FixtureRequest, _brokers: Callable[[str], BrokerUnderTest]) -> BrokerUnderTest:
    """Each broker in turn, without the old releases."""
    return _brokers(request.param)


@pytest.fixture(scope="session")
def embedded(_brokers: Callable[[str], BrokerUnderTest]) -> BrokerUnderTest:
    """The embedded broker alone."""
    return _brokers("embedded")


@pytest.fixture(scope="session")
def secure_brokers(request: pytest.FixtureRequest) -> Iterator[Callable[[str], SecureServer]]:
    """Return a secure broker by its name, started once."""
    running: dict[str, SecureServer] = {}

    def get(name: str) -> SecureServer:
        if name not in request.config.getoption("--brokers").split(","):
            pytest.skip("not in --brokers")
        if name not in running:
            running[name] = new_secure_server(name)
        return running[name]

    yield get
    for server in running.values():
        server.close()


def new_secure_server(name: str) -> SecureServer:
    """Start a secure broker; its caller closes it."""
    server: SecureServer = SecureEmbedded() if name == "embedded" else SecureKafka(name.removeprefix("kafka-"))
    try:
        server.start()
    except MissingPrerequisite as missing:
        lacking(str(missing))
    return server


@pytest.fixture(scope="session")
def secure_broker(request: pytest.FixtureRequest, secure_brokers: Callable[[str], SecureServer]) -> SecureServer:
    """Each secure broker in turn."""
    return secure_brokers(request.param)


def require_kerberos(broker: SecureServer) -> None:
    """Skip, or fail where CI=true, if the KDC of a broker is missing."""
    if broker.access.lacks_kerberos:
        lacking(broker.access.lacks_kerberos)


@pytest.fixture(scope="session")
def java() -> Callable[[BrokerUnderTest], JavaTools]:
    """Kafka's tools of the newest release, for a broker."""
    from integration.kafka import java as launcher
    from integration.kafka import libs

    try:
        launcher()
        libs(VERSIONS[0])
    except MissingPrerequisite as missing:
        lacking(str(missing))
    return lambda broker: JavaTools(broker.bootstrap_servers)
