"""Clients that re-authenticate every few seconds (KIP-368) under load: nothing closes or fails.

    python -m integration.chaos.reauth --broker embedded --minutes 10

A producer sends numbered records at `--rate`, or as fast as it can (0), a member of a group reads
them, a transactional producer commits small transactions, an admin client describes the cluster,
and single sends are timed. The same load runs first against a broker without
`connections.max.reauth.ms`, then with 4,000 ms. The command ends with status 1 unless: no
connection was closed, no call failed, no record was lost or duplicated, and the 99th percentile of
single sends is below twice that without.
"""

from __future__ import annotations

import argparse
import dataclasses
import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import anyio
import uvloop

from aiokwire import Admin, Consumer, Hooks, Producer
from aiokwire.admin import NewTopic
from aiokwire.errors import KafkaError
from integration.bench.meter import Job
from integration.bench.secured import SecuredKafka
from integration.embedded import EmbeddedProcess

REAUTH_MS: Final = 4_000
PARTITIONS: Final = 4
TURN: Final = 0.02  # seconds between two portions of the producer
AHEAD: Final = 200_000  # records that the producer may be ahead of the reader
SINGLE: Final = 0.01  # seconds between two single sends
RATIO: Final = 2.0  # of the 99th percentiles


class Disconnects(Hooks):
    """Counts the connections that a client loses."""

    def __init__(self) -> None:
        self.lost: list[str] = []

    def on_disconnect(self, node_id: int | None, address: str, error: Exception | None) -> None:
        if error is not None:
            self.lost.append(f"{address}: {error}")


@dataclasses.dataclass(slots=True)
class Outcome:
    """The observations of a run."""

    sent: int = 0
    received: int = 0
    committed: int = 0
    described: int = 0
    lost: list[str] = dataclasses.field(default_factory=list)  # connections
    failed: list[str] = dataclasses.field(default_factory=list)  # calls
    wrong: list[str] = dataclasses.field(default_factory=list)  # records
    latencies: list[float] = dataclasses.field(default_factory=list)

    @property
    def p99(self) -> float:
        """The 99th percentile of single sends, in seconds."""
        ordered = sorted(self.latencies)
        return ordered[int(len(ordered) * 0.99)] if ordered else 0.0


class Load:
    """The clients of one run."""

    def __init__(self, options: Mapping[str, Any], seconds: float, rate: int) -> None:
        self._hooks = Disconnects()
        self._options: dict[str, Any] = {**options, "hooks": self._hooks}
        self._seconds = seconds
        self._rate = rate
        self._ended = anyio.Event()
        self._sent = [0] * PARTITIONS
        self.outcome = Outcome(lost=self._hooks.lost)

    async def run(self) -> Outcome:
        """Run every client for the time, then read what is left."""
        async with Admin(**self._options) as admin:
            await admin.create_topics([NewTopic("numbers", PARTITIONS), NewTopic("groups", 1), NewTopic("single", 1)])
            async with anyio.create_task_group() as tasks:
                for client in (self._produce, self._consume, self._transact, self._time_sends):
                    tasks.start_soon(self._guard, client)
                tasks.start_soon(self._describe, admin)
                await anyio.sleep(self._seconds)
                self._ended.set()
        return self.outcome

    async def _guard(self, client: Any) -> None:
        try:
            await client()
        except KafkaError as error:
            self.outcome.failed.append(f"{client.__name__}: {error!r}")

    async def _produce(self) -> None:
        portion = max(1, int(self._rate * TURN) // PARTITIONS) if self._rate else 500
        async with Producer(**self._options) as producer:
            while not self._ended.is_set():
                is_ahead = sum(self._sent) > self.outcome.received + AHEAD
                if not is_ahead:
                    await self._submit(producer, portion)
                await anyio.sleep(TURN if self._rate or is_ahead else 0)
            await producer.flush()
        self.outcome.sent = sum(self._sent)

    async def _submit(self, producer: Producer, portion: int) -> None:
        for partition in range(PARTITIONS):
            for _ in range(portion):
                await producer.submit("numbers", b"%d" % self._sent[partition], partition=partition)
                self._sent[partition] += 1

    async def _consume(self) -> None:
        expected = [0] * PARTITIONS
        async with Consumer("numbers", group_id="readers", auto_offset_reset="earliest", **self._options) as consumer:
            while not (self.outcome.sent and sum(expected) >= self.outcome.sent):
                for record in await consumer.getmany(timeout=1.0):
                    number = int(record.value or b"-1")
                    if number != expected[record.partition] and len(self.outcome.wrong) < 10:
                        self.outcome.wrong.append(
                            f"partition {record.partition}: record {number} instead of {expected[record.partition]}"
                        )
                    expected[record.partition] = number + 1
                    self.outcome.received += 1

    async def _transact(self) -> None:
        async with Producer(transactional_id="reauth", **self._options) as producer:
            while not self._ended.is_set():
                async with producer.transaction():
                    for number in range(5):
                        await producer.submit("groups", b"%d" % number)
                self.outcome.committed += 1
                await anyio.sleep(TURN)

    async def _time_sends(self) -> None:
        async with Producer(**self._options) as producer:
            while not self._ended.is_set():
                began = anyio.current_time()
                await producer.send("single", b"x" * 100)
                self.outcome.latencies.append(anyio.current_time() - began)
                await anyio.sleep(SINGLE)

    async def _describe(self, admin: Admin) -> None:
        while not self._ended.is_set():
            try:
                await admin.describe_cluster()
            except KafkaError as error:
                self.outcome.failed.append(f"describe_cluster: {error!r}")
            self.outcome.described += 1
            await anyio.sleep(0.2)


def verdict(calm: Outcome, reauth: Outcome) -> list[str]:
    """Return the broken guarantees."""
    faults = [f"connection closed: {one}" for one in reauth.lost[:10]]
    faults += [f"call failed: {one}" for one in reauth.failed[:10]]
    faults += [f"records: {one}" for one in reauth.wrong]
    if reauth.received != reauth.sent:
        faults.append(f"{reauth.sent:,} records were sent, {reauth.received:,} received")
    if reauth.p99 > RATIO * calm.p99:
        faults.append(f"99th percentile {reauth.p99 * 1e3:.1f} ms, without re-authentication {calm.p99 * 1e3:.1f} ms")
    return faults


def line(name: str, outcome: Outcome) -> str:
    """Return one line for the operator."""
    return (
        f"{name}: {outcome.sent:,} sent, {outcome.received:,} received, {outcome.committed:,} transactions, "
        f"{outcome.described:,} descriptions, {len(outcome.lost)} connections closed, {len(outcome.failed)} calls "
        f"failed, single sends p99 {outcome.p99 * 1e3:.2f} ms, longest {max(outcome.latencies, default=0) * 1e3:.1f} ms"
    )


@contextmanager
def opened(broker: str, reauth_ms: int) -> Iterator[dict[str, Any]]:
    """Yield client options for a broker that limits sessions to `reauth_ms`; 0: it does not."""
    settings = {"connections.max.reauth.ms": reauth_ms}
    if broker == "embedded":
        process = EmbeddedProcess(settings=settings, secure=True)
        try:
            process.start()
            yield process.client_options
        finally:
            process.close()
    else:
        with SecuredKafka(settings) as kafka:
            yield Job("", "", topic="", count=0, **kafka.way("SASL_SSL")).aiokwire()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m integration.chaos.reauth", description=(__doc__ or "")[:80])
    parser.add_argument("--broker", choices=["embedded", "4.3.1"], default="embedded")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--rate", type=int, default=20_000, help="records a second; 0: no limit")
    given = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    outcomes = []
    for name, reauth_ms, minutes in (("without", 0, given.minutes / 5), ("with", REAUTH_MS, given.minutes)):
        with opened(given.broker, reauth_ms) as options:
            outcomes.append(uvloop.run(Load(options, minutes * 60, given.rate).run()))
        print(line(name, outcomes[-1]), flush=True)
    faults = verdict(*outcomes)
    for fault in faults:
        print(fault, file=sys.stderr)
    raise SystemExit(bool(faults))


if __name__ == "__main__":
    main()
