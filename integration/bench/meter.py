"""The measurements of one client process; the orchestrator and the clients share these types."""

from __future__ import annotations

import itertools
import os
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PARTITIONS = 4
LATENCY_SAMPLES = 20_000
DISTINCT_VALUES = 1_000  # more than fit into lz4's window: a repeated value would compress to nothing


@dataclass(frozen=True, slots=True)
class Job:
    """One task for one client: `task` is produce, consume, iterate, arrow, getarrow or send."""

    task: str
    client: str
    bootstrap: str
    topic: str
    count: int
    value_size: int = 100
    tasks: int = 1
    compression: str = "none"
    security: str = ""  # SSL or SASL_SSL, with the SCRAM-SHA-512 user below; empty: PLAINTEXT
    cafile: str = ""
    username: str = ""
    password: str = ""

    def value(self) -> bytes:
        """Return one value: half of it random, as in real data."""
        half = self.value_size // 2
        return os.urandom(half) + b"x" * (self.value_size - half)

    def librdkafka(self) -> dict[str, str]:
        """Return librdkafka's options for the broker and the way to it."""
        options = {"bootstrap.servers": self.bootstrap}
        if self.security:
            options |= {"security.protocol": self.security, "ssl.ca.location": self.cafile}
        if self.username:
            login = {"sasl.mechanism": "SCRAM-SHA-512", "sasl.username": self.username, "sasl.password": self.password}
            options |= login
        return options

    def aiokwire(self) -> dict[str, Any]:
        """Return aiokwire's options for the broker and the way to it."""
        options: dict[str, Any] = {"bootstrap_servers": self.bootstrap}
        if self.security:
            options |= {"security_protocol": self.security, "ssl_cafile": self.cafile}
        if self.username:
            options |= {"sasl_mechanism": "SCRAM-SHA-512"}
            options |= {"sasl_plain_username": self.username, "sasl_plain_password": self.password}
        return options

    def values(self) -> Iterator[bytes]:
        """Return the `count` values of a produce job."""
        return itertools.islice(itertools.cycle([self.value() for _ in range(DISTINCT_VALUES)]), self.count)


@dataclass(slots=True)
class Figures:
    """The result of a job; times in seconds, memory in MiB, latencies in milliseconds."""

    count: int
    seconds: float
    cpu: float
    peak_mib: float
    latencies: dict[str, float] = field(default_factory=dict)


class Meter:
    """Wall time and this process's own CPU time (user and system) from `start()` to `stop()`."""

    def __init__(self) -> None:
        self._wall = self._cpu = 0.0
        self._latencies: list[float] = []

    def start(self) -> None:
        """Start when the client is connected and has its topic's metadata."""
        self._cpu = _cpu()
        self._wall = time.perf_counter()

    def latency(self, seconds: float) -> None:
        """Add the latency of one awaited send, up to a limit."""
        if len(self._latencies) < LATENCY_SAMPLES:
            self._latencies.append(seconds)

    def stop(self, count: int) -> Figures:
        """Stop when the last record is acknowledged, or returned to the caller."""
        seconds = time.perf_counter() - self._wall
        cpu = _cpu() - self._cpu
        return Figures(count, seconds, cpu, _peak_mib(), self._percentiles())

    def _percentiles(self) -> dict[str, float]:
        if not self._latencies:
            return {}
        ordered = sorted(self._latencies)
        last = len(ordered) - 1
        return {name: 1e3 * ordered[round(last * share)] for name, share in (("p50", 0.5), ("p99", 0.99))}


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _peak_mib() -> float:
    # on Linux ru_maxrss survives an exec and includes the parent; VmHWM is this program's own
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
