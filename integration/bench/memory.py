"""`python -m integration.bench.memory`: the memory of a consumer of 1,000 partitions.

The topic has four times as many bytes as `fetch_memory`. A consumer in its own process first reads
nothing for a while, as a slow handler does, then a little at a time, then everything. Exits with
status 1 unless the peak of its resident memory stays within `fetch_memory` plus 40 MB for
interpreter and modules.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvloop
from rich.console import Console

from aiokwire import Producer
from aiokwire.admin import Admin, NewTopic
from integration.embedded import EmbeddedProcess
from integration.kafka import RealKafka

_ROOT = Path(__file__).resolve().parents[2]
_TOPIC = "memory"
_MIB = 1024 * 1024
_ALLOWED = 40_000_000  # bytes in addition to `fetch_memory`
_VALUE = 100  # bytes
_FILL_FACTOR = 4  # times `fetch_memory`
_READER_SECONDS = 120


async def _fill(bootstrap: str, partitions: int, size: int) -> int:
    each = size // partitions // _VALUE
    value = b"x" * _VALUE
    async with Admin(bootstrap) as admin:
        (await admin.create_topics([NewTopic(_TOPIC, partitions)], timeout=60)).check()
    async with Producer(bootstrap) as producer:
        for partition in range(partitions):
            for _ in range(each):
                await producer.submit(_TOPIC, value, partition=partition)
        await producer.flush()
    return each * partitions


@contextmanager
def _broker(name: str) -> Iterator[str]:
    if name == "embedded":
        embedded = EmbeddedProcess()
        embedded.start()
        try:
            yield embedded.bootstrap_servers
        finally:
            embedded.close()
    else:
        with RealKafka(name) as kafka:
            yield kafka.bootstrap_servers


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m integration.bench.memory", description=__doc__)
    parser.add_argument(
        "--broker", default="embedded", help='"embedded" or a release such as 4.3.1 (default: embedded)'
    )
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--fetch-memory", type=int, default=64 * _MIB, metavar="BYTES")
    return parser.parse_args()


def main() -> int:
    options = _options()
    console = Console(width=None if sys.stdout.isatty() else 130)
    with _broker(options.broker) as bootstrap:
        total = uvloop.run(_fill(bootstrap, options.partitions, _FILL_FACTOR * options.fetch_memory))
        command = [sys.executable, "-m", "integration.bench.memory_reader"]
        command += [bootstrap, _TOPIC, str(options.fetch_memory), str(total)]
        done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=_READER_SECONDS, check=False)
    if done.returncode:
        console.print("[red]the reader failed:[/red]", done.stderr[-1500:], markup=False)
        return 1
    figures = json.loads(done.stdout)
    limit = (options.fetch_memory + _ALLOWED) / _MIB
    console.print(
        f"{options.partitions:,} partitions, {total:,} records of {_VALUE} B, fetch_memory "
        f"{options.fetch_memory / _MIB:.0f} MiB, broker {options.broker}\n"
        f"resident: {figures['before']:.0f} MiB before, {figures['waiting']:.0f} while nothing is read, "
        f"{figures['slow']:.0f} while little is read, {figures['peak']:.0f} at the peak (limit: {limit:.0f})\n"
        f"buffered and in flight: at most {figures['held']:.1f} MiB; records read: {figures['seen']:,}"
    )
    fits = figures["peak"] <= limit and figures["held"] <= options.fetch_memory / _MIB
    return 0 if fits and figures["seen"] == total else 1


if __name__ == "__main__":
    sys.exit(main())
