"""The pytest plugin: fixtures with a Kafka broker. pytest loads it if aiokwire is installed.

Nothing of aiokwire is imported until a test requests a fixture. The broker of an async test runs on
that test's loop (with pytest-asyncio, or anyio's plugin), the broker of any other test in a thread.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import re
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any, Literal

import pytest

if TYPE_CHECKING:
    from aiokwire.broker import Broker
    from aiokwire.consumer import Consumer
    from aiokwire.producer import Producer
    from aiokwire.testing.threaded import ThreadedBroker
    from aiokwire.testing.workers import WorkerTest

JOURNAL = 1000  # requests that a fixture's broker keeps
_topic_numbers = itertools.count(1)

# --- a broker for each test -------------------------------------------------------------------------------------------


@pytest.fixture
def kafka_broker_options() -> dict[str, Any]:
    """Options of `kafka_broker`, those of `aiokwire.broker.Broker`; override it to change them."""
    return {}


@pytest.fixture
def kafka_broker(request: pytest.FixtureRequest, kafka_broker_options: dict[str, Any]) -> Iterator[Any]:
    """A broker for each test, in memory, at free ports of loopback; its journal is on.

    A `Broker` in async tests; in all others a `ThreadedBroker`, whose methods block.
    """
    if inspect.iscoroutinefunction(getattr(request.node, "obj", None)):
        yield request.getfixturevalue(f"_kafka_broker_on_{_loop_scope(request)}_loop")
    else:
        from aiokwire.testing.threaded import ThreadedBroker

        with ThreadedBroker(**{"journal": JOURNAL, **kafka_broker_options}) as broker:
            yield broker


@pytest.fixture
def kafka_broker_secure(request: pytest.FixtureRequest, kafka_broker_options: dict[str, Any]) -> Iterator[Any]:
    """A broker as `kafka_broker`, with TLS and a login: pass its `client_options` to clients.

    A `SecureBroker` in async tests; in all others a `ThreadedSecureBroker`.
    """
    if inspect.iscoroutinefunction(getattr(request.node, "obj", None)):
        yield request.getfixturevalue(f"_kafka_broker_secure_on_{_loop_scope(request)}_loop")
    else:
        from aiokwire.testing.secure import ThreadedSecureBroker

        with ThreadedSecureBroker(**{"journal": JOURNAL, **kafka_broker_options}) as broker:
            yield broker


def _loop_scope(request: pytest.FixtureRequest) -> str:
    """Return the scope of the loop that pytest-asyncio runs a test on."""
    marker = request.node.get_closest_marker("asyncio")
    chosen = (marker.kwargs.get("loop_scope") or marker.kwargs.get("scope")) if marker is not None else None
    if chosen is None:
        with contextlib.suppress(ValueError):  # pytest-asyncio is not installed, or has no such option
            chosen = request.config.getini("asyncio_default_test_loop_scope")
    return str(chosen or "function")


def _broker_on_a_loop(
    loop_scope: Literal["function", "class", "module", "package", "session"], *, secure: bool = False
) -> Any:
    """A fixture for tests of one loop scope, because a broker must run on the loop of its test."""

    async def broker_on_the_tests_loop(kafka_broker_options: dict[str, Any]) -> AsyncIterator[Broker]:
        from aiokwire.testing import Broker, SecureBroker

        kind = SecureBroker if secure else Broker
        async with kind(**{"journal": JOURNAL, **kafka_broker_options}) as broker:
            yield broker

    name = f"_kafka_broker{'_secure' if secure else ''}_on_{loop_scope}_loop"
    try:
        import pytest_asyncio
    except ImportError:
        return pytest.fixture(name=name)(broker_on_the_tests_loop)
    return pytest_asyncio.fixture(loop_scope=loop_scope, name=name)(broker_on_the_tests_loop)


_on_function_loop = _broker_on_a_loop("function")
_on_class_loop = _broker_on_a_loop("class")
_on_module_loop = _broker_on_a_loop("module")
_on_package_loop = _broker_on_a_loop("package")
_on_session_loop = _broker_on_a_loop("session")
_secure_on_function_loop = _broker_on_a_loop("function", secure=True)
_secure_on_class_loop = _broker_on_a_loop("class", secure=True)
_secure_on_module_loop = _broker_on_a_loop("module", secure=True)
_secure_on_package_loop = _broker_on_a_loop("package", secure=True)
_secure_on_session_loop = _broker_on_a_loop("session", secure=True)

# --- one broker for all tests -----------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def kafka_session_broker_options() -> dict[str, Any]:
    """Options of `kafka_session_broker`; override it in `conftest.py` to change them."""
    return {}


@pytest.fixture(scope="session")
def kafka_session_broker(kafka_session_broker_options: dict[str, Any]) -> Iterator[ThreadedBroker]:
    """One broker for all tests of a process, in a thread; each pytest-xdist worker has its own."""
    from aiokwire.testing.threaded import ThreadedBroker

    with ThreadedBroker(**kafka_session_broker_options) as broker:
        yield broker


@pytest.fixture
def kafka_bootstrap_servers(request: pytest.FixtureRequest) -> str:
    """The address of the test's broker: `kafka_broker`'s if the test uses it, or the session's."""
    name = "kafka_broker" if "kafka_broker" in request.fixturenames else "kafka_session_broker"
    address: str = request.getfixturevalue(name).bootstrap_servers
    return address


@pytest.fixture
def kafka_topic(request: pytest.FixtureRequest, kafka_session_broker: ThreadedBroker) -> Iterator[str]:
    """A topic of one partition on the session's broker, for one test; deleted at its end."""
    stem = re.sub(r"[^a-zA-Z0-9._-]", "_", request.node.name)[:200]
    name = f"{stem}-{next(_topic_numbers)}"
    kafka_session_broker.create_topic(name, 1)
    yield name
    kafka_session_broker.delete_topic(name)


# --- workers ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def kafka_worker() -> Callable[..., WorkerTest]:
    """Test workers against their own broker: `async with kafka_worker(worker) as test`.

    With pytest-asyncio 1.4 the async tests that use it run in virtual time.
    """
    from aiokwire.testing.workers import WorkerTest

    return WorkerTest


class _VirtualTime:
    """Has pytest-asyncio run a test on a loop with virtual time."""

    @pytest.hookimpl(tryfirst=True, optionalhook=True)
    def pytest_asyncio_loop_factories(self) -> dict[str, Callable[[], Any]]:
        def new_loop() -> Any:
            from aiokwire.testing.virtual_time import VirtualTimeLoop

            return VirtualTimeLoop()

        return {"virtual time": new_loop}


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Generator[None]:
    """Choose the loop of tests that use `kafka_worker`, and leave all others alone."""
    if "kafka_worker" not in metafunc.fixturenames:
        return (yield)
    plugins, chosen = metafunc.config.pluginmanager, _VirtualTime()
    plugins.register(chosen)
    try:
        return (yield)
    finally:
        plugins.unregister(chosen)


# --- clients ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def kafka_producer(kafka_bootstrap_servers: str) -> Callable[..., Producer[Any, Any]]:
    """Make producers for the test's broker: `async with kafka_producer() as producer`."""
    from aiokwire.producer import Producer

    def make(**options: Any) -> Producer[Any, Any]:
        return Producer(kafka_bootstrap_servers, **options)

    return make


@pytest.fixture
def kafka_consumer(kafka_bootstrap_servers: str) -> Callable[..., Consumer[Any, Any]]:
    """Make consumers, from the earliest record on: `async with kafka_consumer("orders")`."""
    from aiokwire.consumer import Consumer

    def make(*topics: str, **options: Any) -> Consumer[Any, Any]:
        return Consumer(
            *topics, bootstrap_servers=kafka_bootstrap_servers, **{"auto_offset_reset": "earliest", **options}
        )

    return make
