"""Processes of an application: started, checked for health, stopped, killed, measured."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import anyio
import httpx
from anyio.to_thread import run_sync

from integration.kafka.server import free_port

EXAMPLES: Final = Path(__file__).resolve().parents[2] / "docs" / "examples"
STOP_SECONDS: Final = 40.0


class AppProcess:
    """One process in the folder of an application; `command` as for `python -m`."""

    def __init__(self, folder: str, command: list[str], environment: dict[str, str], log: Path) -> None:
        self._folder = EXAMPLES / folder
        self._command = command
        self._environment = {**os.environ, **environment}
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, without waiting."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *self._command],
                cwd=self._folder, env=self._environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip

    async def stop(self) -> int:
        """Send SIGTERM; return the exit status."""
        assert self._process is not None
        self._process.terminate()
        return await run_sync(self._process.wait, STOP_SECONDS)

    async def kill(self) -> None:
        """Send SIGKILL."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        await run_sync(self._process.wait)

    def close(self) -> None:
        """End it if it runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    @property
    def memory_mib(self) -> float:
        """The resident memory; 0 while it does not run."""
        assert self._process is not None
        try:
            lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        except OSError:
            return 0.0
        return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS")), 0.0)


class WebProcess(AppProcess):
    """`uvicorn service:app` on a port of loopback."""

    def __init__(self, folder: str, environment: dict[str, str], log: Path) -> None:
        self.url = f"http://127.0.0.1:{free_port()}"
        options = ["--port", self.url.rpartition(":")[2], "--log-level", "warning", "--timeout-graceful-shutdown", "20"]
        super().__init__(folder, ["uvicorn", "service:app", *options], environment, log)

    async def stop(self) -> int:
        """Send SIGTERM, which uvicorn raises again when it has closed the application; return 0 in
        that case."""
        status = await super().stop()
        return 0 if status == -signal.SIGTERM else status

    async def readiness(self) -> tuple[int, str]:
        """Return status and body of `/readyz`; 0 if nothing responds."""
        try:
            async with httpx.AsyncClient() as client:
                response = await client.get(f"{self.url}/readyz", timeout=10)
        except httpx.HTTPError:
            return 0, ""
        return response.status_code, response.text

    async def until_ready(self, status: int = 200, seconds: float = 60) -> str:
        """Wait until `/readyz` has a status; return its body."""
        found = (0, "")
        with anyio.move_on_after(seconds):
            while True:
                found = await self.readiness()
                if found[0] == status:
                    return found[1]
                await anyio.sleep(0.1)
        log = self._log.read_text()[-800:]
        raise TimeoutError(f"/readyz was not {status} within {seconds:.0f} s; last: {found}; {log}")
