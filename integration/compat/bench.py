"""What the compat layer costs and gains: one program on aiokafka, on the layer, and on our
interface.

    python -m integration.compat.bench [--broker embedded] [--records 2000000] [--rounds 3]

A quarter of the records is written, half of them is read. Clients take turns, each measurement in a
process of its own with uvloop. Figures are medians, in records per second and CPU seconds of the
client per million records.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from contextlib import closing
from typing import Final

from integration.compat.environment import ROOT
from integration.embedded import EmbeddedProcess
from integration.kafka import KafkaServer, RealKafka

CLIENTS: Final = ("aiokafka", "compat", "aiokwire")
KINDS: Final = ("produce", "getmany", "iterate")
PARTITIONS: Final = 4


def server_named(name: str) -> KafkaServer:
    """Return the embedded broker, or Kafka of a release, with the settings of a production
    broker."""
    settings = {"num.partitions": PARTITIONS}
    return (
        EmbeddedProcess(settings=settings)
        if name == "embedded"
        else RealKafka(name, settings=settings, full_speed=True)
    )


def measure(client: str, kind: str, address: str, topic: str, records: int) -> tuple[float, float]:
    """Run one measurement; return records per second and CPU seconds per million."""
    command = [sys.executable, "-m", "integration.compat.bench_worker", client, kind, address, topic, str(records)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{client} {kind}: {done.stderr}")
    found = json.loads(done.stdout)
    return found["rate"], found["cpu"]


def main() -> None:
    """Print a line per kind and client."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--broker", default="embedded")
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    results: dict[tuple[str, str], list[tuple[float, float]]] = {}
    with closing(server_named(arguments.broker)) as server:
        server.start()
        address = server.bootstrap_servers
        measure("aiokwire", "produce", address, "read", arguments.records)
        for round_number in range(arguments.rounds):
            for kind in KINDS:
                for client in CLIENTS:
                    topic = f"written-{client}-{round_number}" if kind == "produce" else "read"
                    count = arguments.records // 4 if kind == "produce" else arguments.records
                    found = measure(client, kind, address, topic, count)
                    results.setdefault((kind, client), []).append(found)
    for kind in KINDS:
        medians = {
            client: tuple(statistics.median(column) for column in zip(*results[kind, client], strict=True))
            for client in CLIENTS
        }
        for client, (rate, cpu) in medians.items():
            print(f"{kind:8} {client:9} {rate:12,.0f} records/s  {cpu:6.2f} CPU s per million")
        own, layer, peer = medians["aiokwire"][0], medians["compat"][0], medians["aiokafka"][0]
        print(f"{kind:8} the layer: {1 - layer / own:.0%} below our own rate, {layer / peer:.1f} times aiokafka's")


if __name__ == "__main__":
    main()
