"""One connection to one broker, and the framing that the embedded broker shares.

address    "host:port" lists            framing    bytes to frames, without I/O
dial       names to transports          in_flight  the request of each response, without I/O
handshake  ApiVersions and later        wire       the protocol object of one transport
racing     first success wins           connection what `aiokwire.cluster` uses
writing    chunks to a transport

Names load at first use: the embedded broker imports the framing alone, and starts faster.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiokwire.net.address import Address, parse_addresses
    from aiokwire.net.connection import Connection, ConnectionConfig
    from aiokwire.net.framing import FrameReader
    from aiokwire.net.handshake import ApiVersions
    from aiokwire.net.racing import Race
    from aiokwire.net.writing import write_scattered

__all__ = [
    "Address",
    "ApiVersions",
    "Connection",
    "ConnectionConfig",
    "FrameReader",
    "Race",
    "parse_addresses",
    "write_scattered",
]

_HOME_OF = {
    "Address": "address",
    "ApiVersions": "handshake",
    "Connection": "connection",
    "ConnectionConfig": "connection",
    "FrameReader": "framing",
    "Race": "racing",
    "parse_addresses": "address",
    "write_scattered": "writing",
}


def __getattr__(name: str) -> object:
    module = _HOME_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'aiokwire.net' has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"aiokwire.net.{module}"), name)
    globals()[name] = value
    return value
