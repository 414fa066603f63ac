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


def scatters(transport: asyncio.BaseTransport) -> bool:
    """Return whether the transport's `writelines` writes without joining."""
    return getattr(type(transport), "writelines", None) is not asyncio.WriteTransport.writelines


def write_scattered(transport: asyncio.WriteTransport, pieces: Sequence[Any], high_water: int) -> None:
    """Write pieces uncopied; pause the protocol above `high_water` bytes (the transport's limit).

    Raises: OSError, RuntimeError: the transport is closed.
    """
    transport.writelines(pieces)
    if WRITELINES_NEVER_PAUSES and type(transport).__module__.startswith("asyncio."):
        transport.set_write_buffer_limits(high=high_water)  # checks the buffer, and pauses
