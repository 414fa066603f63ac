"""A plugin of pytest that runs aiokafka's own tests on `aiokwire.compat.aiokafka`, without Docker.

It replaces the module `aiokafka` before the tests are imported, provides the fixtures of their
conftest for the broker that `AIOKWIRE_SUITE_BROKER` describes, and marks the tests of
`expected.toml`.
Modules of aiokafka that have no equivalent are importable and empty: a test that uses one fails.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import importlib.abc
import importlib.machinery
import json
import logging
import os
import sys
import tomllib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from aiokwire.compat.aiokafka import AIOKafkaConsumer
from aiokwire.compat.aiokafka.replace import replace_aiokafka
from integration.compat.suite_access import AclManager, KafkaConfig, KerberosUtils

EXPECTED: Final = Path(__file__).with_name("expected.toml")
SERVER: Final = "AIOKWIRE_SUITE_BROKER"  # JSON of `suite_broker.described`
VERSION: Final = "4.3.1"  # of the broker, also what the embedded one implements


class Absent:
    """Stands for a name of aiokafka's internals."""

    def __init__(self, *_args: Any, **_options: Any) -> None:
        raise NotImplementedError("this name is internal to aiokafka")


class AbsentModule(ModuleType):
    """Stands for a module of aiokafka's internals."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__ = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (Absent,), {})


class AbsentFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules of aiokafka that the compat layer does not have."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith("aiokafka.") or _has(fullname):
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return AbsentModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def _has(name: str) -> bool:
    try:
        return importlib.util.find_spec(f"aiokwire.compat.{name}") is not None
    except ModuleNotFoundError:
        return False


replace_aiokafka()
sys.meta_path.insert(0, AbsentFinder())
for _name in ("aiokafka.codec", "aiokafka.consumer.fetcher", "aiokafka.record.util"):
    importlib.import_module(_name)  # names that tests import from their packages


class Waits:
    """The part of a consumer's internals that tests use to wait for an assignment."""

    def __init__(self, consumer: AIOKafkaConsumer) -> None:
        self._consumer = consumer

    async def wait_for_assignment(self) -> None:
        await self._consumer._steps.wait()
        await self._consumer._consumer.joined()


# Names of internals that tests read beside the behavior that they test.
AIOKafkaConsumer._subscription = property(Waits)  # type: ignore[assignment, method-assign]
AIOKafkaConsumer._group_instance_id = property(  # type: ignore[attr-defined]
    lambda consumer: consumer._consumer.config.group_instance_id
)


@dataclass
class Server:
    """The broker under test, as aiokafka's fixtures describe it."""

    host: str
    ports: dict[str, int]
    ssl_folder: Path
    kerberos: KerberosUtils

    @property
    def hosts(self) -> list[str]:
        return [f"{self.host}:{self.ports['PLAINTEXT']}"]


def pytest_configure(config: pytest.Config) -> None:
    for name in ("asyncio", "urllib3"):
        logging.getLogger(name).setLevel(logging.INFO)
    config.addinivalue_line("markers", "ssl: tests of aiokafka that need certificates")


def reasons() -> dict[str, str]:
    """Return why tests do not run, by file or by file and test."""
    table: dict[str, str] = tomllib.loads(EXPECTED.read_text())["tests"]
    return table


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out the files that test internals only."""
    return True if collection_path.name in reasons() else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Do not run the tests that are listed with a reason."""
    table = reasons()
    for item in items:
        name = item.nodeid.split("::", 1)[1].split("[")[0]
        reason = table.get(f"{item.path.name}::{name}")
        if reason is not None:
            item.add_marker(pytest.mark.xfail(run=False, reason=reason))


@pytest.fixture(scope="session")
def kafka_server() -> Server:
    found = json.loads(os.environ[SERVER])
    kerberos = KerberosUtils(found["keytab"], found["cache"], found["lacks_kerberos"])
    return Server("localhost", found["ports"], Path(found["ssl_folder"]), kerberos)


@pytest.fixture(scope="session")
def ssl_folder(kafka_server: Server) -> Path:
    return kafka_server.ssl_folder


@pytest.fixture(scope="class")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield loop
    if not loop.is_closed():
        loop.call_soon(loop.stop)
        loop.run_forever()
        loop.close()
    gc.collect()
    asyncio.set_event_loop(None)


@pytest.fixture(autouse=True)
def collect_garbage() -> Iterator[None]:
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="class")
def setup_test_class_serverless(request: pytest.FixtureRequest, loop: asyncio.AbstractEventLoop) -> None:
    request.cls.loop = loop


@pytest.fixture(scope="class")
def setup_test_class(request: pytest.FixtureRequest, loop: asyncio.AbstractEventLoop, kafka_server: Server) -> None:
    request.cls.loop = loop
    request.cls.kafka_host = kafka_server.host
    request.cls.kafka_port = kafka_server.ports["PLAINTEXT"]
    request.cls.kafka_ssl_port = kafka_server.ports["SSL"]
    request.cls.kafka_sasl_plain_port = kafka_server.ports["SASL_PLAINTEXT"]
    request.cls.kafka_sasl_ssl_port = kafka_server.ports["SASL_SSL"]
    request.cls.hosts = kafka_server.hosts
    request.cls.kafka_version = VERSION
    request.cls.ssl_folder = kafka_server.ssl_folder
    request.cls.acl_manager = AclManager(kafka_server.hosts[0])
    request.cls.kafka_config = KafkaConfig(kafka_server.hosts[0])
    request.cls.kerberos_utils = kafka_server.kerberos
