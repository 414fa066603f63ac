"""One connection to one broker, and the framing that the embedded broker shares.

address    "host:port" lists            framing    bytes to frames, without I/O
dial       names to transports          in_flight  which answer belongs to whom, without I/O
handshake  ApiVersions and after        wire       the protocol object of one transport
racing     first success wins           connection what `aiokwire.cluster` uses
writing    chunks to a transport

Names load when first asked for: the embedded broker takes the framing alone, and starts sooner without the rest.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiokwire.net.address import DEFAULT_PORT, Address, parse_addresses
    from aiokwire.net.connection import Connection, ConnectionConfig
    from aiokwire.net.framing import FrameReader, explain_foreign
    from aiokwire.net.handshake import ApiVersions, Exchange, Offered
    from aiokwire.net.in_flight import Receiver
    from aiokwire.net.racing import Race
    from aiokwire.net.states import TRANSITIONS, ConnectionEvent, ConnectionState
    from aiokwire.net.wire import Wire
    from aiokwire.net.writing import join_small, write_scattered

__all__ = [
    "DEFAULT_PORT",
    "TRANSITIONS",
    "Address",
    "ApiVersions",
    "Connection",
    "ConnectionConfig",
    "ConnectionEvent",
    "ConnectionState",
    "Exchange",
    "FrameReader",
    "Offered",
    "Race",
    "Receiver",
    "Wire",
    "explain_foreign",
    "join_small",
    "parse_addresses",
    "write_scattered",
]

_HOMES = {
    "address": (
        "DEFAULT_PORT",
        "Address",
        "parse_addresses",
    ),
    "connection": (
        "Connection",
        "ConnectionConfig",
    ),
    "framing": (
        "FrameReader",
        "explain_foreign",
    ),
    "handshake": (
        "ApiVersions",
        "Exchange",
        "Offered",
    ),
    "in_flight": ("Receiver",),
    "racing": ("Race",),
    "states": (
        "TRANSITIONS",
        "ConnectionEvent",
        "ConnectionState",
    ),
    "wire": ("Wire",),
    "writing": (
        "join_small",
        "write_scattered",
    ),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    module = _HOME_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'aiokwire.net' has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"aiokwire.net.{module}"), name)
    globals()[name] = value
    return value
