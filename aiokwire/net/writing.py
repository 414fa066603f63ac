"""Writes chunks to a transport: small ones joined, large ones uncopied; pauses on a full buffer.

Used by `wire` and by the embedded broker.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import Any, Final

# Chunks below this are joined before they are written. Measured on loopback: a system call, or a buffer more in a
# scatter write, costs as much as copying 64 (uvloop) to 200 KiB (asyncio); a copy beyond that costs more.
JOIN_BELOW = 64 * 1024
# The most plain text in one TLS record (RFC 8446).
TLS_RECORD = 16 * 1024
# asyncio's own `writelines` does not call `pause_writing` in these releases, however much it buffers (gh-127655).
WRITELINES_NEVER_PAUSES: Final = (3, 12) <= sys.version_info < (3, 12, 9) or (3, 13) <= sys.version_info < (3, 13, 2)


def join_small(chunks: list[Any]) -> list[Any]:
    """Return the chunks in order, small neighbours joined, large ones uncopied."""
    if len(chunks) == 1:
        return chunks
    pieces: list[Any] = []
    small: list[Any] = []
    for chunk in chunks:
        if len(chunk) < JOIN_BELOW:
            small.append(chunk)
        else:
            if small:
                pieces.append(small[0] if len(small) == 1 else b"".join(small))
                small = []
            pieces.append(chunk)
    if small:
        pieces.append(small[0] if len(small) == 1 else b"".join(small))
    return pieces


def join_for_tls(chunks: list[Any]) -> list[Any]:
    """Return the chunks as `join_small`, but no TLS record holds the head of a message alone.

    A small piece before a large one is filled up to whole records from it.
    """
    pieces = join_small(chunks)
    filled: list[Any] = []
    for piece in pieces:
        missing = 0
        if filled and len(piece) >= JOIN_BELOW and len(filled[-1]) < JOIN_BELOW:
            missing = -len(filled[-1]) % TLS_RECORD
            filled[-1] = b"".join((filled[-1], memoryview(piece)[:missing]))
        filled.append(memoryview(piece)[missing:] if missing else piece)
    return filled


def scatters(transport: asyncio.BaseTransport) -> bool:
    """Return whether the transport's `writelines` writes without joining."""
    return getattr(type(transport), "writelines", None) is not asyncio.WriteTransport.writelines


def write_scattered(transport: asyncio.WriteTransport, pieces: Sequence[Any], high_water: int) -> None:
    """Write pieces uncopied; pause the protocol above `high_water` bytes (the transport's limit).

    Raises: OSError, RuntimeError: the transport is closed.
    """
    transport.writelines(pieces)
    if WRITELINES_NEVER_PAUSES and type(transport).__module__.startswith("asyncio."):
        transport.set_write_buffer_limits(high=high_water)  # looks at the buffer, and pauses
