"""Kafka's VerifiableConsumer in its own process: it prints its events, one JSON object per line."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

from integration.kafka import JavaTools

_SECONDS = 60.0
_MAIN = "org.apache.kafka.tools.VerifiableConsumer"

Event = dict[str, Any]


class VerifiableConsumer:
    """One member of a group."""

    def __init__(self, bootstrap: str, topic: str, group: str, *arguments: str) -> None:
        fixed = ("--bootstrap-server", bootstrap, "--topic", topic, "--group-id", group, "--reset-policy", "earliest")
        self._process = subprocess.Popen(
            JavaTools(bootstrap).command(_MAIN, *fixed, *arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.events: list[Event] = []
        self.owned: set[int] = set()  # partitions, according to the printed events
        self.consumed = 0

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)

    def _take(self, timeout: float) -> None:
        line = self._lines.get(timeout=timeout)
        if not line.startswith("{"):  # Kafka logs errors to the standard output
            return
        event: Event = json.loads(line)
        self.events.append(event)
        partitions = {int(one["partition"]) for one in event.get("partitions", ()) if isinstance(one, dict)}
        if event["name"] == "partitions_assigned":
            self.owned |= partitions
        elif event["name"] == "partitions_revoked":
            self.owned -= partitions
        elif event["name"] == "records_consumed":
            self.consumed += int(event["count"])

    def look(self) -> None:
        """Process the printed events."""
        while not self._lines.empty():
            self._take(1.0)

    def stop(self) -> None:
        """Stop it with SIGTERM: it leaves its group."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(_SECONDS)
        self._close()

    def kill(self) -> None:
        """Kill it: it does not leave its group."""
        self._process.kill()
        self._process.wait(_SECONDS)
        self._close()

    def _close(self) -> None:
        self._reader.join(_SECONDS)
        if self._process.stdout is not None:
            self._process.stdout.close()

    @property
    def running(self) -> bool:
        return self._process.poll() is None


def until(fits: Callable[[], bool], what: str, *consumers: VerifiableConsumer, seconds: float = _SECONDS) -> None:
    """Process the events of the consumers until the check returns True."""
    end = time.monotonic() + seconds  # noqa: TID251 - a test's own deadline, outside of any loop
    while True:
        for one in consumers:
            one.look()
        if fits():
            return
        assert time.monotonic() < end, f"{what}: {[(sorted(one.owned), one.consumed) for one in consumers]}"  # noqa: TID251 - as above
        threading.Event().wait(0.05)
