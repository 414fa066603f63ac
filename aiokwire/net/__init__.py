"""One connection to one broker, and the framing that the embedded broker shares.

address    "host:port" lists            framing    bytes to frames, without I/O
dial       names to transports          in_flight  the request of each response, without I/O
handshake  ApiVersions and later        wire       the protocol object of one transport
racing     first success wins           connection what `aiokwire.cluster` uses
writing    chunks to a transport          tls        encrypts a transport
metrics    the counts of connections

Names load at first use: the embedded broker imports the framing alone, and starts faster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiokwire._lazy import lazy_names

if TYPE_CHECKING:
    from aiokwire.net.address import Address as Address, parse_addresses as parse_addresses
    from aiokwire.net.connection import Connection as Connection, ConnectionConfig as ConnectionConfig
    from aiokwire.net.framing import FrameReader as FrameReader
    from aiokwire.net.handshake import ApiVersions as ApiVersions
    from aiokwire.net.metrics import NETWORK_METRICS as NETWORK_METRICS, NetworkCounts as NetworkCounts
    from aiokwire.net.racing import Race as Race
    from aiokwire.net.tls import TlsTransport as TlsTransport
    from aiokwire.net.writing import write_scattered as write_scattered
else:
    __all__, __getattr__, __dir__ = lazy_names(
        globals(),
        {
            "net.address": "Address parse_addresses",
            "net.connection": "Connection ConnectionConfig",
            "net.framing": "FrameReader",
            "net.handshake": "ApiVersions",
            "net.metrics": "NETWORK_METRICS NetworkCounts",
            "net.racing": "Race",
            "net.tls": "TlsTransport",
            "net.writing": "write_scattered",
        },
    )
