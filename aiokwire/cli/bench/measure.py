"""What a bench run measures, and how it is shown."""

from __future__ import annotations

import resource
from dataclasses import asdict, dataclass
from time import perf_counter

from aiokwire.cli.output import print_json, print_report

PERCENTILES = (50.0, 95.0, 99.0, 99.9)


@dataclass(frozen=True)
class Result:
    """One run."""

    records: int
    bytes: int
    seconds: float
    cpu_seconds: float  # user and system, of this process
    peak_memory_mb: float
    latency_ms: dict[str, float]  # percentile to milliseconds

    @property
    def per_second(self) -> float:
        return self.records / self.seconds if self.seconds else 0.0


class Stopwatch:
    """Wall and CPU time since its start."""

    def __init__(self) -> None:
        self._wall = perf_counter()
        self._cpu = _cpu_seconds()

    def stop(self, records: int, size: int, latencies: list[float]) -> Result:
        """The result of `records` with `size` bytes; `latencies` in seconds."""
        return Result(
            records=records,
            bytes=size,
            seconds=perf_counter() - self._wall,
            cpu_seconds=_cpu_seconds() - self._cpu,
            peak_memory_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            latency_ms=percentiles(latencies),
        )


def percentiles(latencies: list[float]) -> dict[str, float]:
    """Percentiles in milliseconds of latencies in seconds; empty for none."""
    if not latencies:
        return {}
    ordered = sorted(latencies)
    last = len(ordered) - 1
    return {f"p{rank:g}": ordered[min(last, int(len(ordered) * rank / 100))] * 1000 for rank in PERCENTILES} | {
        "max": ordered[-1] * 1000
    }


def show(title: str, result: Result, *, as_json: bool) -> None:
    """Print a result as a table or as JSON."""
    if as_json:
        print_json({"bench": title, "per_second": result.per_second, **asdict(result)})
        return
    rows: list[list[object]] = [
        ["records", result.records],
        ["records/s", result.per_second],
        ["MB/s", result.bytes / 1e6 / result.seconds if result.seconds else 0.0],
        ["seconds", result.seconds],
        ["CPU s per million", result.cpu_seconds / result.records * 1e6 if result.records else 0.0],
        ["peak memory, MB", result.peak_memory_mb],
    ]
    rows += [[f"latency {name}, ms", value] for name, value in result.latency_ms.items()]
    print_report(title, ["figure", "value"], rows)


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
