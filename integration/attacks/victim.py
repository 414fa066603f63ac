"""Another client of the attacked broker, in its own process: asks for metadata every 20 ms.

Started as `python -m integration.attacks.victim OPTIONS`, the client's options as JSON, it prints a
line when it is connected, runs until its standard input is closed, and prints how long each
response took.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import anyio
import anyio.to_thread
import uvloop

from aiokwire import Admin
from integration.attacks.figures import Figure

_PAUSE = 0.02  # seconds
_END_SECONDS = 60.0


class Victim:
    """The process, from the attacker's side."""

    def __init__(self, options: dict[str, Any]) -> None:
        command = [sys.executable, "-m", "integration.attacks.victim", json.dumps(options)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        if self._process.stdout.readline().strip() != "ready":
            raise RuntimeError("the victim could not connect")

    def waits(self, p99: float = 250.0, longest: float = 1000.0) -> list[Figure]:
        """End the process; return how long it waited for responses, in ms."""
        waits = json.loads(self._process.communicate(timeout=_END_SECONDS)[0])
        slow = sorted(waits)
        return [
            Figure("p99", slow[int(len(slow) * 0.99)] * 1000, p99, " ms"),
            Figure("longest", slow[-1] * 1000, longest, " ms"),
        ]

    def stop(self) -> None:
        """End the process if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()


async def _ask(options: dict[str, Any]) -> None:
    waits: list[float] = []
    answered = anyio.Event()
    async with Admin(**options) as admin, anyio.create_task_group() as tasks:
        await admin.describe_cluster()
        print("ready", flush=True)

        async def end() -> None:
            await anyio.to_thread.run_sync(sys.stdin.read)
            await answered.wait()  # an attack may be shorter than a pause
            tasks.cancel_scope.cancel()

        tasks.start_soon(end)
        while True:
            began = anyio.current_time()
            await admin.describe_cluster()
            waits.append(anyio.current_time() - began)
            answered.set()
            await anyio.sleep(_PAUSE)
    print(json.dumps(waits), flush=True)


if __name__ == "__main__":
    uvloop.run(_ask(json.loads(sys.argv[1])))
