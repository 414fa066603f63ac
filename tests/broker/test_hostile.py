"""Hostile bytes: each request gets a response or closes its connection; nothing else happens."""

from __future__ import annotations

import asyncio
import random
import tracemalloc
from collections.abc import Coroutine, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aiokwire.broker.configs import BrokerConfigs
from aiokwire.broker.dispatch import APIS, MESSAGE_LENGTH, Api, CloseConnection, Origin, read_call
from aiokwire.broker.log import MemoryStorage
from aiokwire.broker.state import BrokerState
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import ProtocolViolation
from aiokwire.protocol import ApiKey, encode_request, encode_response, request_type
from aiokwire.protocol.messages import alter_client_quotas
from tests.broker.raw import RawClient, batch, fetch_request, produce_request

HEADER = 8


@pytest.fixture(scope="module")
def state() -> Iterator[BrokerState]:
    storage = MemoryStorage(capacity=1 << 24)
    opened = BrokerState(
        storage, BrokerConfigs({"num.partitions": "1"}, node_id=1), random.Random(1), receives_metrics=True
    )
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
    """Whether there is a response that can be encoded; else the connection is closed or waits."""
    try:
        call, work = read_call(state, frame, Origin(connection_id=1))
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
    """Assert that the request after any frame gets a response."""
    await _answered(state, frame)
    assert await _answered(state, _sample(APIS[ApiKey.METADATA], APIS[ApiKey.METADATA].last))


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_malformed_requests_get_a_response_or_close_the_connection(state: BrokerState, data: st.DataObject) -> None:
    api = data.draw(st.sampled_from(sorted(APIS.values())))
    version = data.draw(st.integers(api.served_from, api.last))
    frame = _sample(api, version)
    for _ in range(data.draw(st.integers(0, 4))):
        frame[data.draw(st.integers(HEADER, len(frame) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(HEADER, len(frame)))
    asyncio.run(_check_next_request(state, frame[:cut]))


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(frame=st.binary(min_size=HEADER, max_size=200))
def test_random_bytes_get_a_response_or_close_the_connection(state: BrokerState, frame: bytes) -> None:
    asyncio.run(_check_next_request(state, bytearray(frame)))


def _tiny_elements(kind: str) -> bytearray:
    """A request whose array announces, and holds, millions of elements of one byte or a few."""
    count = 2_000_000
    head = encode_request(request_type(ApiKey[kind])(), 0, 1, "c")
    assert head
    if kind == "METADATA":  # version 8: plain encoding, topics as strings of no length
        frame = bytearray(b"".join(encode_request(request_type(ApiKey.METADATA)(), 8, 1, "c"))[4:18])
        return frame[:11] + count.to_bytes(4, "big") + bytes(2 * count + 3)
    return bytearray(b"".join(head)[4:15]) + count.to_bytes(4, "big") + bytes(2 * count)


@pytest.mark.parametrize("kind", ["METADATA", "DESCRIBE_GROUPS"])
def test_millions_of_tiny_elements_are_refused_before_they_are_decoded(state: BrokerState, kind: str) -> None:
    frame = _tiny_elements(kind)
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolViolation, match="array of 2000000 elements"):
            read_call(state, frame, Origin(connection_id=1))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20


def test_many_tags_in_a_request_header_are_refused(state: BrokerState) -> None:
    head = bytearray(b"".join(encode_request(request_type(ApiKey.METADATA)(), 12, 1, "c"))[4:15])
    tags = b"".join(number.to_bytes(1, "big") + b"\0" for number in range(101))
    with pytest.raises(ProtocolViolation, match="array of 101 elements"):
        read_call(state, head + b"\x65" + tags + b"\0" * 8, Origin(connection_id=1))


def test_a_request_of_ten_thousand_partitions_is_served(state: BrokerState) -> None:
    request = fetch_request("t")
    request.topics[0].partitions = [request.topics[0].partitions[0]] * 10_000
    frame = bytearray(b"".join(encode_request(request, 12, 1, "c"))[4:])
    call, _ = read_call(state, frame, Origin(connection_id=1))
    assert call.api == ApiKey.FETCH


async def test_an_error_that_repeats_long_names_is_shortened(client: RawClient) -> None:
    names = [alter_client_quotas.EntityData(entity_type=letter * 30_000, entity_name="t") for letter in "ab"]
    request = alter_client_quotas.AlterClientQuotasRequest(
        entries=[alter_client_quotas.AlterClientQuotasRequestEntryData(entity=names)]
    )
    (entry,) = (await client.ask(request, 1)).entries
    assert entry.error_code == ErrorCode.INVALID_REQUEST
    assert entry.error_message is not None
    assert "a quota is for" in entry.error_message
    assert len(entry.error_message) == MESSAGE_LENGTH
