"""ResourceWarning for what was started and never closed: once, and only then."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import uvloop

from aiokwire.admin import Admin
from aiokwire.broker import Broker
from aiokwire.cluster import Client
from aiokwire.consumer import Consumer
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import AuthorizationError, ConfigurationError, ConnectionFailed
from aiokwire.producer import Producer
from aiokwire.protocol import ApiKey

MAKERS: dict[str, Callable[[str], Any]] = {
    "Producer": lambda servers: Producer(servers, client_id="mine"),
    "Consumer": lambda servers: Consumer("t", bootstrap_servers=servers, client_id="mine"),
    "Consumer of a group": lambda servers: Consumer("t", group_id="g", bootstrap_servers=servers, client_id="mine"),
    "Admin": lambda servers: Admin(servers, client_id="mine"),
    "Client": lambda servers: Client(servers, client_id="mine"),
}
LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
every_kind = pytest.mark.parametrize("kind", MAKERS)
each_loop = pytest.mark.parametrize("loop", LOOPS)
SENTENCE = "{} 'mine' was not closed: use `async with`, or await close()"


def run(loop: str, main: Callable[[], Any]) -> list[str]:
    """The ResourceWarnings about clients of a program that ends; whatever it holds is collected."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
            runner.run(main())
        gc.collect()
    messages = [str(each.message) for each in caught if issubclass(each.category, ResourceWarning)]
    return [each for each in messages if "was not closed" in each]


@every_kind
@each_loop
def test_a_loop_that_ends_with_an_open_client_warns_once(kind: str, loop: str) -> None:
    kept: list[Any] = []

    async def main() -> None:
        async with Broker(topics={"t": 1}) as broker:
            client = MAKERS[kind](broker.bootstrap_servers)
            kept.append(client)
            await client.start()

    async def twice() -> None:
        await main()

    assert run(loop, twice) == [SENTENCE.format(kind.split(maxsplit=1)[0])]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept.clear()
        gc.collect()


@each_loop
def test_a_producer_that_started_at_the_second_attempt_does_not_warn_while_it_runs(loop: str) -> None:
    """Regression: the client of the first attempt warned when it was collected."""

    async def main() -> None:
        async with Broker(topics={"t": 1}) as broker:
            producer = Producer(broker.bootstrap_servers, transactional_id="mine")
            broker.faults.on(ApiKey.INIT_PRODUCER_ID).error(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
            with pytest.raises(AuthorizationError):
                await producer.start()
            await producer.start()
            gc.collect()
            await producer.close()

    assert run(loop, main) == []


@pytest.mark.parametrize("kind", [kind for kind in MAKERS if kind != "Client"])
@each_loop
def test_a_dropped_client_warns_when_it_is_collected_while_the_loop_runs(kind: str, loop: str) -> None:
    async def main() -> None:
        async with Broker(topics={"t": 1}) as broker:
            client = MAKERS[kind](broker.bootstrap_servers)
            await client.start()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                del client
                gc.collect()
            assert [str(each.message) for each in caught] == [SENTENCE.format(kind.split(maxsplit=1)[0])]

    assert run(loop, main) == []


@every_kind
@each_loop
def test_a_client_that_was_closed_or_never_started_is_silent(kind: str, loop: str) -> None:
    async def main() -> None:
        async with Broker(topics={"t": 1}) as broker:
            async with MAKERS[kind](broker.bootstrap_servers):
                pass
            MAKERS[kind](broker.bootstrap_servers)
            started = MAKERS[kind](broker.bootstrap_servers)
            await started.start()
            await started.close()

    assert run(loop, main) == []


@each_loop
def test_a_client_whose_start_failed_is_silent(loop: str) -> None:
    async def main() -> None:
        for kind in (Producer, Admin, Client):
            with pytest.raises(ConnectionFailed):
                await kind("127.0.0.1:1", bootstrap_timeout_ms=1).start()
        with pytest.raises(ConfigurationError):
            Producer("127.0.0.1:1", linger_ms=-1)

    assert run(loop, main) == []


def test_a_forked_child_is_silent() -> None:
    script = (
        "import asyncio, gc, os, sys, warnings\n"
        "from aiokwire.broker import Broker\n"
        "from aiokwire.producer import Producer\n"
        "async def main():\n"
        "    async with Broker(topics={'t': 1}) as broker:\n"
        "        producer = Producer(broker.bootstrap_servers)\n"
        "        await producer.start()\n"
        "        child = os.fork()\n"
        "        if child == 0:\n"
        "            del producer\n"
        "            gc.collect()\n"
        "            sys.stderr.flush()\n"
        "            os._exit(0)\n"
        "        os.waitpid(child, 0)\n"
        "        await producer.close()\n"
        "asyncio.run(main())\n"
    )
    assert _stderr(script) == ""


def test_a_program_that_ends_with_an_open_producer_is_warned_by_the_interpreter() -> None:
    script = (
        "import asyncio\n"
        "from aiokwire.broker import Broker\n"
        "from aiokwire.producer import Producer\n"
        "async def main():\n"
        "    global producer\n"
        "    async with Broker(topics={'t': 1}) as broker:\n"
        "        producer = Producer(broker.bootstrap_servers, client_id='mine')\n"
        "        await producer.start()\n"
        "asyncio.run(main())\n"
    )
    assert _stderr(script).count(SENTENCE.format("Producer")) == 1


def _stderr(script: str) -> str:
    """What a program prints there; Python 3.12 deprecates a fork beside threads, harmless here."""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-W", "always::ResourceWarning", "-c", script]
    done = subprocess.run(command, check=True, timeout=60, capture_output=True, text=True, env=dict(os.environ))
    return done.stderr
