"""Kafka's wire protocol: encodes and decodes messages. No I/O.

    encode_request(request, ...) -> chunks of a frame     decode_request(frame) -> header, request
    encode_response(response, ...) -> chunks of a frame   decode_response(frame, ...) -> response

The messages are generated modules, one per API: `from aiokwire.protocol.messages import produce`.
"""

from aiokwire.protocol._codec import CompactReader, CompactWriter, PlainReader, PlainWriter, release, untrack
from aiokwire.protocol.api import (
    NO_VERSION,
    ZERO_UUID,
    Buffer,
    Data,
    Message,
    Request,
    Response,
    Struct,
    UnknownTags,
    VersionRange,
    request_type,
    uuid_text,
)
from aiokwire.protocol.api_key import ApiKey
from aiokwire.protocol.embedded import decode_embedded, encode_embedded
from aiokwire.protocol.headers import (
    RequestHeader,
    decode_request,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
)

__all__ = [
    "NO_VERSION",
    "ZERO_UUID",
    "ApiKey",
    "Buffer",
    "CompactReader",
    "CompactWriter",
    "Data",
    "Message",
    "PlainReader",
    "PlainWriter",
    "Request",
    "RequestHeader",
    "Response",
    "Struct",
    "UnknownTags",
    "VersionRange",
    "decode_embedded",
    "decode_request",
    "decode_request_header",
    "decode_response",
    "encode_embedded",
    "encode_request",
    "encode_response",
    "release",
    "request_type",
    "untrack",
    "uuid_text",
]
