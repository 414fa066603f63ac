"""Hostile bytes: each request is answered or its connection is closed; nothing else comes out."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aiokwire.broker.configs import BrokerConfigs
from aiokwire.broker.dispatch import APIS, Api, CloseConnection, read_call
from aiokwire.broker.log import MemoryStorage
from aiokwire.broker.state import BrokerState
from aiokwire.errors import ProtocolViolation
from aiokwire.protocol import ApiKey, encode_request, encode_response, request_type
from tests.broker.raw import batch, fetch_request, produce_request

HEADER = 8


@pytest.fixture(scope="module")
def state() -> Iterator[BrokerState]:
    storage = MemoryStorage(capacity=1 << 24)
    opened = BrokerState(storage, BrokerConfigs({"num.partitions": "1"}, node_id=1), random.Random(1))
    opened.open()
    opened.topics.create("t", 1, {})
    yield opened
    opened.logs.abandon()


def _sample(api: Api, version: int) -> bytearray:
    request = request_type(api.key)()
    if api.key is ApiKey.PRODUCE and version < 13:
        request = produce_request("t", batch([b"a", b"b"], magic=2 if version >= 3 else 1))
    elif api.key is ApiKey.FETCH and version < 13:
        request = fetch_request("t")
    return bytearray(b"".join(encode_request(request, version, 1, "c"))[4:])


async def _answered(state: BrokerState, frame: bytearray) -> bool:
    """Whether there is an answer, which can be encoded; else the connection is closed, or waits."""
    try:
        call, work = read_call(state, frame, peer="", local=None, connection_id=1)
        result = work()
        if isinstance(result, Coroutine) and call.api != ApiKey.FETCH:
            result = await result
        elif isinstance(result, Coroutine):
            result.close()  # a long poll
            return False
        if result is not None:
            assert encode_response(result, call.version, call.correlation_id)  # type: ignore[arg-type]  # no awaitable
        return result is not None
    except (CloseConnection, ProtocolViolation):
        return False


async def _check_next_request(state: BrokerState, frame: bytearray) -> None:
    """Assert that the request after any frame is answered."""
    await _answered(state, frame)
    assert await _answered(state, _sample(APIS[ApiKey.METADATA], APIS[ApiKey.METADATA].last))


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_requests_are_answered_or_refused(state: BrokerState, data: st.DataObject) -> None:
    api = data.draw(st.sampled_from(sorted(APIS.values())))
    version = data.draw(st.integers(api.served_from, api.last))
    frame = _sample(api, version)
    for _ in range(data.draw(st.integers(0, 4))):
        frame[data.draw(st.integers(HEADER, len(frame) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(HEADER, len(frame)))
    asyncio.run(_check_next_request(state, frame[:cut]))


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(frame=st.binary(min_size=HEADER, max_size=200))
def test_random_bytes_are_answered_or_refused(state: BrokerState, frame: bytes) -> None:
    asyncio.run(_check_next_request(state, bytearray(frame)))
