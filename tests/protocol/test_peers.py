"""The messages of kafka-python: it reads the same values from our bytes, and writes the same."""

from __future__ import annotations

import random
import uuid
from typing import Any

import pytest

from aiokwire.protocol import ApiKey, Message, Request, Response, encode_request, encode_response, request_type
from aiokwire.protocol.messages import api_versions

from .peer import request_and_response_types
from .samples import encode, hints, sample

PEERS = request_and_response_types()
SHARED: list[type[Request] | type[Response]] = [
    kind for key in ApiKey for kind in (request_type(key), request_type(key).RESPONSE) if kind.__name__ in PEERS
]
# kafka-python shortens these.
RENAMED = {
    "topic_authorized_operations": "authorized_operations",
    "cluster_authorized_operations": "authorized_operations",
}


def test_most_client_messages_can_be_compared() -> None:
    assert len(SHARED) >= 80


@pytest.mark.parametrize("kind", SHARED, ids=lambda kind: kind.__name__)
def test_kafka_python_agrees(kind: type[Request] | type[Response]) -> None:
    peer = PEERS[kind.__name__]
    rng = random.Random(kind.__name__)
    lowest, highest = peer.valid_versions
    for version in range(lowest, min(kind.VERSIONS.max, highest) + 1):
        for _ in range(3):
            message = sample(kind, rng, kind.VERSIONS, version, unknown_tags=False)  # it drops them
            if isinstance(message, api_versions.ApiVersionsResponse):
                message.error_code = 0  # with an error it is read as version 0
            data = encode(message, kind.VERSIONS, version)
            theirs = peer.decode(frame_of(message, version), version=version, header=True, framed=True)
            assert theirs.header.correlation_id == 7
            assert_same(message, theirs)
            values = {
                name: getattr(theirs, name) for name, field in peer.fields.items() if field.for_version_q(version)
            }
            assert peer(version=version, **values).encode() == data


def frame_of(message: Message, version: int) -> bytes:
    if isinstance(message, Request):
        return b"".join(encode_request(message, version, 7, "me"))
    assert isinstance(message, Response)
    return b"".join(encode_response(message, version, 7))


def assert_same(ours: Message, theirs: Any) -> None:
    default = type(ours)()
    for name in hints(type(ours)):
        mine, other = getattr(ours, name), getattr(theirs, name if name in theirs.fields else RENAMED.get(name, name))
        if other is None:  # the version does not carry it
            assert mine in (getattr(default, name), None), name
        else:
            assert_equal(mine, other)


def assert_equal(ours: Any, theirs: Any) -> None:
    if isinstance(ours, Message):
        assert_same(ours, theirs)
    elif isinstance(ours, list):
        for one, other in zip(ours, theirs, strict=True):
            assert_equal(one, other)
    elif isinstance(theirs, uuid.UUID):
        assert ours == theirs.bytes
    elif isinstance(theirs, set):
        assert {bit for bit in range(32) if ours >> bit & 1} == theirs  # their reading of authorized operations
    else:
        assert ours == theirs
