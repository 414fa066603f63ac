"""The CPU time of a produced record by kind of work, from samples of `perf`: a table and a plot.

`python -m integration.bench.profile` needs Linux's perf and writes build/profile.png. All samples
of the process count, minus those of a run with few records, which excludes its start.
"""

from __future__ import annotations

import asyncio
import collections
import itertools
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import asdict
from pathlib import Path
from typing import Final

import uvloop
from rich.console import Console
from rich.table import Table

from aiokwire.admin import Admin, NewTopic
from integration.bench.meter import PARTITIONS, Job
from integration.kafka import RealKafka

_OUTPUT: Final = Path(__file__).resolve().parents[2] / "build"
_SIZES: Final = {100: 8_000_000, 1024: 2_000_000}
_FEW: Final = 1000
_HERTZ: Final = 1999
_FLOOR: Final = "the caller's own loop and await"
_REST: Final = "Python per batch, per request, per turn of the loop"
# The kinds of samples by shared object and symbol; the first match counts.
_KINDS: Final = [
    ("the kernel: socket, copies, wake-ups", r"^\[kernel|^\[vdso"),
    ("CRC-32C", r"_crc32c"),
    ("encoding: varints, header, copying the value", r"_builder|memmove|memcpy"),
    ("`submit`: checks, partition, accounting", r"_accumulator|_arguments|_partition|_hash"),
    ("the `Delivery`", r"_delivery"),
    ("allocation", r"(_PyObject_(Malloc|Free)|PyObject_(Malloc|Free)|libc.*(malloc|free|calloc|realloc))"),
    ("uvloop", r"uvloop|loop\.cpython"),
]


def floor(records: int = 3_000_000) -> float:
    """Return the µs per record of the caller's own loop: `for value in values: await done`."""

    async def loop() -> None:
        done = asyncio.get_running_loop().create_future()
        done.set_result(None)
        for _ in itertools.repeat(b"", records):
            await done

    spent = []
    for _ in range(3):
        began = time.process_time()
        uvloop.run(loop())
        spent.append(time.process_time() - began)
    return min(spent) / records * 1e6


async def topic_on(bootstrap_servers: str) -> str:
    """Create a topic."""
    name = f"profile-{uuid.uuid4().hex[:8]}"
    async with Admin(bootstrap_servers) as admin:
        await admin.create_topics([NewTopic(name, PARTITIONS)])
    return name


def sampled(job: Job, directory: Path) -> collections.Counter[str]:
    """Return the samples of a process that does the job, by kind."""
    data = directory / "perf.data"
    command = [sys.executable, "-m", "integration.bench.worker", json.dumps(asdict(job))]
    record = ["perf", "record", "--quiet", "--event", "cpu-clock", "--freq", str(_HERTZ), "--output", str(data)]
    subprocess.run([*record, *command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    report = ["perf", "report", "--input", str(data), "--stdio", "--no-children", "--fields", "sample,dso,symbol"]
    printed = subprocess.run(report, check=True, capture_output=True, text=True).stdout
    found: collections.Counter[str] = collections.Counter()
    for line in printed.splitlines():
        parts = line.split(None, 1)
        if len(parts) == 2 and parts[0].isdigit():
            found[kind_of(parts[1])] += int(parts[0])
    return found


def kind_of(symbol: str) -> str:
    """Return the kind of a sample."""
    return next((kind for kind, pattern in _KINDS if re.search(pattern, symbol)), _REST)


def shares(bootstrap_servers: str, size: int, count: int, loop: float) -> dict[str, float]:
    """Return µs per record, by kind."""
    with tempfile.TemporaryDirectory() as directory:
        runs = []
        for number in (count, _FEW):
            topic = uvloop.run(topic_on(bootstrap_servers))
            job = Job("produce", "aiokwire", bootstrap_servers, topic, number, size)
            runs.append(sampled(job, Path(directory)))
    many, few = runs
    micros = {
        kind: max(0, many[kind] - few[kind]) / _HERTZ / count * 1e6 for kind in [*(name for name, _ in _KINDS), _REST]
    }
    return {_FLOOR: loop, **micros, _REST: max(0.0, micros[_REST] - loop)}


def plot(found: dict[int, dict[str, float]], path: Path) -> None:
    """Plot stacked bars, one for each size of value."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(10, 3), layout="constrained")
    for place, by_kind in enumerate(found.values()):
        left = 0.0
        for number, (kind, micros) in enumerate(by_kind.items()):
            label = kind if place == 0 else None
            axes.barh(place, micros, left=left, color=f"C{number}", label=label, edgecolor="white")
            left += micros
    axes.set_yticks(range(len(found)), [f"{size} bytes" for size in found])
    axes.set(xlabel="µs of the client's CPU for each record", title="submit, idempotent, acks=all")
    axes.legend(fontsize="x-small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(path, dpi=120)


def main() -> int:
    """Run the command."""
    console = Console(width=110)
    if shutil.which("perf") is None:
        console.print("perf is missing: install the package linux-perf or linux-tools")
        return 2
    loop = floor()
    found: dict[int, dict[str, float]] = {}
    with RealKafka("4.3.1", full_speed=True) as kafka:
        shares(kafka.bootstrap_servers, 100, _SIZES[100] // 4, loop)  # the broker's warm-up
        for size, count in _SIZES.items():
            found[size] = shares(kafka.bootstrap_servers, size, count, loop)
    table = Table("where", *(f"{size} B, µs" for size in found))
    for kind in found[100]:
        table.add_row(kind, *(f"{by_kind[kind]:.3f}" for by_kind in found.values()))
    table.add_section()
    table.add_row("total", *(f"{sum(by_kind.values()):.3f}" for by_kind in found.values()))
    console.print(table)
    _OUTPUT.mkdir(exist_ok=True)
    plot(found, _OUTPUT / "profile.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
