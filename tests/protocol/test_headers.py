"""Headers and whole frames."""

from __future__ import annotations

import struct

import pytest

from aiokwire.errors import ProtocolViolation, UnsupportedVersion
from aiokwire.protocol import (
    ApiKey,
    RequestHeader,
    decode_request,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
    request_type,
)
from aiokwire.protocol.messages import api_versions, controlled_shutdown, heartbeat, metadata, produce


def frame(chunks: list[bytes | bytearray | memoryview]) -> bytes:
    """Return the frame without its size; check the size."""
    data = b"".join(chunks)
    assert struct.unpack_from(">i", data) == (len(data) - 4,)
    return data[4:]


def test_the_header_before_a_flexible_body_has_tags() -> None:
    request = heartbeat.HeartbeatRequest(group_id="g", generation_id=3, member_id="m")
    plain = frame(encode_request(request, 3, 7, "me"))
    flexible = frame(encode_request(request, 4, 7, "me"))
    assert plain[:12] == struct.pack(">hhih2s", 12, 3, 7, 2, b"me")
    assert flexible[:13] == struct.pack(">hhih2sb", 12, 4, 7, 2, b"me", 0)
    assert decode_request(plain) == (RequestHeader(12, 3, 7, "me"), request)
    assert decode_request(flexible) == (RequestHeader(12, 4, 7, "me"), request)


def test_unknown_tags_of_a_header_are_kept() -> None:
    data = frame(encode_request(heartbeat.HeartbeatRequest(), 4, 7, None, ((5, b"five"),)))
    assert decode_request(data)[0] == RequestHeader(12, 4, 7, None, ((5, b"five"),))


def test_the_response_to_api_versions_never_has_tags_in_its_header() -> None:
    versions = frame(encode_response(api_versions.ApiVersionsResponse(), 3, 9))
    assert versions[:6] == struct.pack(">ih", 9, 0)
    beat = frame(encode_response(heartbeat.HeartbeatResponse(error_code=5), 4, 9))
    assert beat[:11] == struct.pack(">ibih", 9, 0, 0, 5)
    assert decode_response(beat, heartbeat.HeartbeatResponse, 4).error_code == 5


def test_an_old_broker_responds_to_a_newer_api_versions_in_version_0() -> None:
    old = api_versions.ApiVersionsResponse(error_code=35, api_keys=[api_versions.ApiVersion(api_key=18, max_version=2)])
    assert decode_response(frame(encode_response(old, 0, 9)), api_versions.ApiVersionsResponse, 4) == old


def test_controlled_shutdown_began_without_a_client_id() -> None:
    data = frame(encode_request(controlled_shutdown.ControlledShutdownRequest(broker_id=4), 0, 1, "unused"))
    assert data == struct.pack(">hhii", 7, 0, 1, 4)
    header, request = decode_request(data)
    assert header.client_id is None
    assert request == controlled_shutdown.ControlledShutdownRequest(broker_id=4)


def test_a_header_can_be_read_of_apis_and_versions_that_are_not_known() -> None:
    unknown = struct.pack(">hhih2s", 9999, 3, 7, 2, b"me") + b"whatever"
    assert decode_request_header(unknown) == (RequestHeader(9999, 3, 7, "me"), 12)
    newer = struct.pack(">hhih2sb", ApiKey.API_VERSIONS, 99, 7, 2, b"me", 0) + b"whatever"
    assert decode_request_header(newer) == (RequestHeader(18, 99, 7, "me"), 13)
    with pytest.raises(KeyError):
        decode_request(unknown)
    with pytest.raises(UnsupportedVersion, match="ApiVersionsRequest has versions 0 to 4, not 99"):
        decode_request(newer)


def test_a_version_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UnsupportedVersion, match="not 14"):
        encode_request(produce.ProduceRequest(), 14, 1, None)
    with pytest.raises(UnsupportedVersion, match="not -1"):
        encode_response(produce.ProduceResponse(), -1, 1)
    with pytest.raises(UnsupportedVersion):
        decode_response(bytes(20), produce.ProduceResponse, 14)


def test_a_violation_names_the_message_and_its_version() -> None:
    data = frame(encode_response(metadata.MetadataResponse(), 12, 1))
    with pytest.raises(ProtocolViolation, match="MetadataResponse version 12"):
        decode_response(data[:-1], metadata.MetadataResponse, 12)
    with pytest.raises(ProtocolViolation, match="MetadataResponse version 12: 1 bytes follow"):
        decode_response(data + b"x", metadata.MetadataResponse, 12)
    request = frame(encode_request(metadata.MetadataRequest(), 12, 1, None))
    with pytest.raises(ProtocolViolation, match="MetadataRequest version 12"):
        decode_request(request[:-1])
    with pytest.raises(ProtocolViolation):
        decode_request_header(b"\0\3\0")


def test_requests_are_found_by_their_key() -> None:
    assert request_type(0) is produce.ProduceRequest
    assert request_type(ApiKey.METADATA).RESPONSE is metadata.MetadataResponse
    with pytest.raises(KeyError):
        request_type(-1)
