"""The demo's broker: a process, so that it can be killed as by a power failure."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from aiokwire.errors import StorageError

START_TIMEOUT = 20.0  # seconds; it takes a quarter of one, but the machine may be busy


class BrokerProcess:
    """`aiokwire broker` on loopback over one data directory."""

    def __init__(self, data_dir: Path, topic: str, partitions: int) -> None:
        self._data_dir = data_dir
        self._topic = f"{topic}:{partitions}"
        self._listen = "127.0.0.1:0"
        self._process: Process | None = None

    @property
    def bootstrap_servers(self) -> str:
        return self._listen

    async def start(self) -> None:
        """Start the broker; a restart listens on the same address.

        Raises: StorageError: it ended before it was ready.
        """
        self._process = await anyio.open_process(
            [
                sys.executable, "-m", "aiokwire", "broker",
                "--listen", self._listen, "--data-dir", str(self._data_dir), "--topic", self._topic,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=None,
        )  # fmt: skip
        assert self._process.stdout is not None
        try:
            with anyio.fail_after(START_TIMEOUT):
                line = await BufferedByteReceiveStream(self._process.stdout).receive_until(b"\n", 1000)
        except (TimeoutError, anyio.IncompleteRead, anyio.EndOfStream) as error:
            raise StorageError(f"the broker did not start (exit status {self._process.returncode})") from error
        self._listen = line.decode().removeprefix("listening on ").strip()

    async def kill(self) -> None:
        """Kill the broker with SIGKILL: nothing is flushed or closed."""
        if self._process is not None:
            self._process.kill()
            await self._process.wait()
            await self._process.aclose()
            self._process = None

    async def stop(self) -> None:
        """Stop the broker with SIGTERM, and wait until it has closed its log."""
        if self._process is not None:
            self._process.terminate()
            await self._process.wait()
            await self._process.aclose()
            self._process = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):
            await self.stop()
