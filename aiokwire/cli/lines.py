"""Lines from a file or the standard input, without blocking the loop, in chunks so that one line costs little."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator
from typing import BinaryIO

from aiokwire.errors import InvalidArgument
from aiokwire.threads import run_in_thread

CHUNK = 1 << 20
MAX_LINE = 64 << 20  # a line is one record: past this the input is not made of lines


async def read_chunks(source: BinaryIO) -> AsyncIterator[bytes]:
    """What `source` holds, until its end; a terminal or pipe is awaited, a file is read in a thread."""
    if stat.S_ISREG(os.fstat(source.fileno()).st_mode):
        while chunk := await run_in_thread(source.read, CHUNK):
            yield chunk
        return
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=CHUNK)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
    try:
        while chunk := await reader.read(CHUNK):
            yield chunk
    finally:
        transport.close()


async def read_lines(source: BinaryIO) -> AsyncIterator[list[bytes]]:
    """The lines of `source` without their ends, as many at a time as one chunk holds.

    Raises: InvalidArgument: a line is longer than 64 MiB.
    """
    rest = b""
    async for chunk in read_chunks(source):
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > MAX_LINE:
            raise InvalidArgument(f"a line is longer than {MAX_LINE} bytes; --whole sends each file as one record")
        if lines:
            yield [line.removesuffix(b"\r") for line in lines]
    if rest:
        yield [rest]


def standard_input() -> BinaryIO:
    """The standard input as bytes."""
    return sys.stdin.buffer
