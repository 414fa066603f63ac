"""The broker's log has no control characters, whatever names, client ids and texts a peer sends."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import random
import re
from collections.abc import Coroutine, Iterator
from typing import Any, cast

import anyio
import anyio.lowlevel
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aiokwire._text import printable
from aiokwire.broker.configs import BrokerConfigs
from aiokwire.broker.dispatch import APIS, CloseConnection, Origin, read_call
from aiokwire.broker.log import MemoryStorage
from aiokwire.broker.peers import PeerLog
from aiokwire.broker.state import BrokerState
from aiokwire.errors import KafkaError, UnsupportedVersion
from aiokwire.protocol import ZERO_UUID, Request, Struct, encode_request, request_type

TURNS = 20  # of the loop, for what a request starts
KNOWN = ["t", "g", ""]  # names that exist let a request pass its first checks
HOSTILE = [
    "\n2026-11-22 CRITICAL forged",
    "\x1b[2J\x1b]0;owned\x07",
    "\r\x08\x7f",
    "\x9b31m\x85",
    "\u202egnp\u2066",
    "\u2028\ufeff",
    "\t\x00",
]
ELEMENT = re.compile(r"list\[(.+?)\](?: \| None)?$")


@pytest.fixture(scope="module")
def state() -> Iterator[BrokerState]:
    configs = BrokerConfigs({"num.partitions": "1"}, node_id=1)
    opened = BrokerState(MemoryStorage(capacity=1 << 26), configs, random.Random(1))
    opened.open()
    opened.topics.create("t", 1, {})
    yield opened
    opened.logs.abandon()


class Peer:
    """Writes requests whose texts and bytes are hostile, in lists too; otherwise valid."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def text(self) -> str:
        return self.rng.choice(KNOWN) + self.rng.choice(["", *HOSTILE])

    def fill(self, kind: type[Struct]) -> Struct:
        names = vars(inspect.getmodule(kind))
        parameters = inspect.signature(kind).parameters.values()
        return kind(**{one.name: self._value(str(one.annotation), one.default, names) for one in parameters})

    def _value(self, annotation: str, default: Any, names: dict[str, Any]) -> Any:
        if annotation in {"str", "str | None"}:
            return self.text()
        if annotation in {"bytes", "bytes | None"} and default != ZERO_UUID:
            return self.text().encode()
        if annotation == "int" and default in {0, -1}:
            return self.rng.choice([default, 0, 1, 100])
        element = ELEMENT.match(annotation)
        if element is None:
            return default
        if element[1] == "str":
            return [self.text()]
        return [self.fill(names[element[1]])] if element[1] in names else default

    def _encoded(self, request: Request[Any], *versions: int) -> bytearray:
        """In the first of the versions that has all fields."""
        for version in versions:
            with contextlib.suppress(UnsupportedVersion):
                return bytearray(b"".join(encode_request(request, version, 1, self.text()))[4:])
        return bytearray(b"".join(encode_request(type(request)(), versions[-1], 1, self.text()))[4:])

    def frame(self) -> bytearray:
        api = self.rng.choice(sorted(APIS.values()))
        request = cast("Request[Any]", self.fill(cast("type[Struct]", request_type(api.key))))
        frame = self._encoded(request, self.rng.randint(api.served_from, api.last), api.last)
        if self.rng.random() < 0.2:  # what cannot be read is reported, too
            del frame[self.rng.randint(8, len(frame)) :]
        return frame


async def serve(state: BrokerState, frame: bytearray) -> None:
    """Handle a request, as a connection would, for some turns of the loop."""
    peers = PeerLog()
    try:
        _, work = read_call(state, frame, Origin(peer="192.0.2.1:1", connection_id=1))
        result = work()
        if isinstance(result, Coroutine):
            async with anyio.create_task_group() as group:

                async def run() -> None:
                    await result

                group.start_soon(run)
                for _ in range(TURNS):
                    await anyio.lowlevel.checkpoint()
                group.cancel_scope.cancel()
    except* (CloseConnection, KafkaError) as errors:
        for error in errors.exceptions:
            peers.warn("192.0.2.1:1", str(error))
    peers.flush()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(seed=st.integers(0, 2**32))
def test_no_log_line_contains_a_control_character(
    state: BrokerState, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "aiokwire")
    caplog.clear()
    asyncio.run(serve(state, Peer(seed).frame()))
    for record in caplog.records:
        message = record.getMessage()
        assert message == printable(message), record
