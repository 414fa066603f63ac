"""The headers of requests and responses, and whole frames.

A request's header is version 2 (tagged fields) where its body is flexible, else 1; only
ControlledShutdown version 0 has version 0, without a client id. A response's header is version 1
where its body is flexible, except for ApiVersions: a client must read that one before it knows the
versions of the broker (KIP-511).
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeVar

from aiokwire.error_codes import ErrorCode
from aiokwire.errors import ProtocolViolation, UnsupportedVersion
from aiokwire.protocol._codec import CompactReader, CompactWriter, PlainReader, PlainWriter
from aiokwire.protocol.api import Buffer, Request, Response, UnknownTags, request_type
from aiokwire.protocol.api_key import ApiKey

R = TypeVar("R", bound=Response)

MAX_HEADER_TAGS: Final = 100  # Kafka's own headers have none
# Looking up an enum's member costs more than a comparison, and happens for every frame.
_API_VERSIONS: Final = ApiKey.API_VERSIONS
_CONTROLLED_SHUTDOWN: Final = ApiKey.CONTROLLED_SHUTDOWN


class RequestHeader(NamedTuple):
    """The header of a request."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    unknown_tags: UnknownTags = ()


def request_header_version(api_key: int, api_version: int) -> int:
    """Return 0, 1 or 2. For an unknown API return 1: every later header begins like version 1."""
    if api_key == ApiKey.CONTROLLED_SHUTDOWN and api_version == 0:
        return 0
    try:
        flexible = request_type(api_key).VERSIONS.flexible
    except KeyError:
        return 1
    return 2 if api_version >= flexible else 1


def encode_request(
    request: Request, version: int, correlation_id: int, client_id: str | None, unknown_tags: UnknownTags = ()
) -> list[Buffer]:
    """Encode a frame, size included, as chunks for one scatter write. Large byte fields are not
    copied.

    Raises:
        UnsupportedVersion: the version does not exist, or lacks a field of the request.
        InvalidArgument: a value that the protocol cannot express.
    """
    versions = request.VERSIONS
    if not versions.min <= version <= versions.max:
        raise _no_such_version(type(request), version)
    api = request.API
    out = CompactWriter(True) if version >= versions.flexible else PlainWriter(True)
    out.int16(api)
    out.int16(version)
    out.int32(correlation_id)
    if version or api is not _CONTROLLED_SHUTDOWN:
        out.plain_nullable_string(client_id)
        out.tags(unknown_tags)
    request.encode(out, version)
    return out.chunks()


def encode_response(response: Response, version: int, correlation_id: int) -> list[Buffer]:
    """Encode a frame, size included, as chunks for one scatter write. Large byte fields are not
    copied.

    Raises:
        UnsupportedVersion: the version does not exist, or lacks a field of the response.
    """
    versions = response.VERSIONS
    if not versions.min <= version <= versions.max:
        raise _no_such_version(type(response), version)
    flexible = version >= versions.flexible
    out = CompactWriter(True) if flexible else PlainWriter(True)
    out.int32(correlation_id)
    if flexible and response.API is not _API_VERSIONS:
        out.tags(())
    response.encode(out, version)
    return out.chunks()


def decode_request_header(frame: Buffer) -> tuple[RequestHeader, int]:
    """Return the header of a frame (without its size), and the position of the body.

    Does not read the body, so that a broker can respond to unknown APIs and versions.

    Raises:
        ProtocolViolation: the bytes are not a request header.
    """
    src = CompactReader(frame)
    src.limit_elements(MAX_HEADER_TAGS)
    api_key = src.int16()
    version = src.int16()
    correlation_id = src.int32()
    header_version = request_header_version(api_key, version)
    client_id = src.plain_nullable_string() if header_version > 0 else None
    tags = src.tags() if header_version > 1 else ()
    return RequestHeader(api_key, version, correlation_id, client_id, tags), src.position


def decode_request(
    frame: Buffer, *, trailing: bool = False, max_elements: int | None = None
) -> tuple[RequestHeader, Request]:
    """Decode a request from a frame without its size.

    With `trailing`, bytes after the request are ignored, as in Kafka: librdkafka's Metadata request
    has some. `max_elements` bounds the elements of all its arrays together, which become Python
    objects (default: unlimited).

    Raises:
        KeyError: the API is unknown.
        UnsupportedVersion: the API has no such version.
        ProtocolViolation: the bytes are not a request of this API and version.
    """
    header, position = decode_request_header(frame)
    kind = request_type(header.api_key)
    versions, version = kind.VERSIONS, header.api_version
    if not versions.min <= version <= versions.max:
        raise _no_such_version(kind, version)
    src = CompactReader(frame, position) if version >= versions.flexible else PlainReader(frame, position)
    if max_elements is not None:
        src.limit_elements(max_elements)
    try:
        request = kind.decode(src, version)
        if not trailing:
            src.end()
    except ProtocolViolation as error:
        raise ProtocolViolation(f"{kind.__name__} version {version}: {error}") from None
    return header, request


def decode_response(frame: Buffer, response_type: type[R], version: int, *, max_elements: int | None = None) -> R:
    """Decode a response from a frame without its size, which begins with the correlation id.

    `max_elements` bounds the elements of all its arrays together, which become Python objects
    (default: unlimited).

    A broker that does not support the version of an ApiVersions request responds in version 0.

    Raises:
        UnsupportedVersion: the version does not exist.
        ProtocolViolation: the bytes are not a response of this type and version.
    """
    versions = response_type.VERSIONS
    if not versions.min <= version <= versions.max:
        raise _no_such_version(response_type, version)
    flexible = version >= versions.flexible
    src = CompactReader(frame) if flexible else PlainReader(frame)
    if max_elements is not None:
        src.limit_elements(max_elements)
    try:
        src.int32()
        if response_type.API is _API_VERSIONS:
            if PlainReader(frame, 4).int16() == ErrorCode.UNSUPPORTED_VERSION:
                version, src = 0, PlainReader(frame, 4)
                if max_elements is not None:
                    src.limit_elements(max_elements)
        elif flexible:
            src.tags()
        response = response_type.decode(src, version)
        src.end()
    except ProtocolViolation as error:
        raise ProtocolViolation(f"{response_type.__name__} version {version}: {error}") from None
    return response


def _no_such_version(kind: type[Request] | type[Response], version: int) -> UnsupportedVersion:
    versions = kind.VERSIONS
    return UnsupportedVersion(
        f"{kind.__name__} has versions {versions.min} to {versions.max}, not {version}", request=kind.__name__
    )
