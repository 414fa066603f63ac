"""One connection to one broker, and the framing that the embedded broker shares.

address    "host:port" lists            framing    bytes to frames, without I/O
dial       names to transports          in_flight  which answer belongs to whom, without I/O
handshake  ApiVersions and after        wire       the protocol object of one transport
racing     first success wins           connection what `aiokwire.cluster` uses
"""

from aiokwire.net.address import DEFAULT_PORT, Address, parse_addresses
from aiokwire.net.connection import Connection, ConnectionConfig
from aiokwire.net.framing import FrameReader, explain_foreign
from aiokwire.net.handshake import ApiVersions, Exchange, Offered
from aiokwire.net.racing import Race
from aiokwire.net.states import TRANSITIONS, ConnectionEvent, ConnectionState
from aiokwire.net.wire import Wire, join_small

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
    "Wire",
    "explain_foreign",
    "join_small",
    "parse_addresses",
]
