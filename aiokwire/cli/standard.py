"""The standard streams of the process: none is closed, and an error names standard output."""

from __future__ import annotations

import asyncio
import io
import os
import sys
from typing import Any, TextIO

from aiokwire.threads import start_thread

STDOUT = "standard output"


def open_standard_streams() -> None:
    """Open /dev/null on closed descriptors 0 to 2, and name standard output in its errors.

    libuv aborts the process if one of its own descriptors gets such a number.
    """
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if _is_open(descriptor):
            continue
        opened = os.open(os.devnull, os.O_RDWR)
        if opened != descriptor:
            os.dup2(opened, descriptor)
            os.close(opened)
        os.set_inheritable(descriptor, True)
        setattr(sys, name, open(descriptor, mode, closefd=False))  # noqa: SIM115 - lives until the process ends
    _name_stdout(sys.stdout)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


class _Stdout(io.FileIO):
    """Standard output, whose errors have its name as their `filename`."""

    def write(self, data: Any, /) -> int | None:  # type: ignore[override]  # a Buffer, which 3.11 cannot name
        try:
            return super().write(data)
        except OSError as error:
            raise OSError(error.errno, error.strerror, STDOUT) from None


def _name_stdout(stream: TextIO) -> None:
    if not isinstance(stream, io.TextIOWrapper):
        return  # replaced by an embedding program
    named = _Stdout(stream.fileno(), "w", closefd=False)
    sys.stdout = io.TextIOWrapper(
        named if isinstance(stream.buffer, io.RawIOBase) else io.BufferedWriter(named),  # raw: `python -u`
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def discard_stdout() -> None:
    """Send further output to /dev/null, including output that the interpreter flushes at exit."""
    buffer = getattr(sys.stdout, "buffer", None)
    raw = getattr(buffer, "raw", buffer)
    if isinstance(raw, _Stdout):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, raw.fileno())
        os.close(null)
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - lives until the process ends


async def stdin_closed() -> None:
    """Wait for the end of standard input, whether it is a pipe, a file or a terminal."""
    await asyncio.wrap_future(start_thread(_read_stdin, name="aiokwire stdin"))


def _read_stdin() -> None:
    stdin = sys.__stdin__
    while stdin is not None and os.read(stdin.fileno(), 1 << 16):
        pass
