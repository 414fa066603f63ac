"""Messages within bytes fields: a 2-byte version, then the body. Members of consumer groups
exchange subscriptions and assignments in this form, through a broker that does not decode them.
"""

from __future__ import annotations

from typing import TypeVar

from aiokwire.errors import ProtocolViolation, UnsupportedVersion
from aiokwire.protocol._codec import PlainReader
from aiokwire.protocol.api import Buffer, Data, reader_for, writer_for

D = TypeVar("D", bound=Data)


def encode_embedded(data: Data, version: int) -> bytes:
    """Encode the version, then the message.

    Raises:
        UnsupportedVersion: the version does not exist, or lacks a field of the message.
    """
    if version not in data.VERSIONS:
        raise UnsupportedVersion(f"{type(data).__name__} has no version {version}", request=type(data).__name__)
    out = writer_for(data.VERSIONS, version)
    out.int16(version)
    data.encode(out, version)
    return out.getvalue()


def decode_embedded(content: Buffer, data_type: type[D]) -> D:
    """Decode a message of any version. A version newer than the newest known is read as that one:
    these messages only grow at their end.

    Raises:
        ProtocolViolation: the bytes are not such a message.
    """
    version = PlainReader(content).int16()
    if version < data_type.VERSIONS.min:
        raise ProtocolViolation(f"{data_type.__name__} has no version {version}")
    known = min(version, data_type.VERSIONS.max)
    src = reader_for(data_type.VERSIONS, known, content, 2)
    try:
        data = data_type.decode(src, known)
        if version == known:
            src.end()
    except ProtocolViolation as error:
        raise ProtocolViolation(f"{data_type.__name__} version {version}: {error}") from None
    return data
