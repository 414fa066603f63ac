"""Writers, two relay processes, PostgreSQL and a broker; relays, database and broker are killed.

Each transaction increments the counter of a key and adds a record with its new value; some are
rolled back. In the end the topic has, for each key, the values 1 to n of the database in this
order, if records with an id that came before are left out.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import logging
import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import ExitStack
from typing import Final

import anyio
import sqlalchemy as sa
import uvloop
from anyio.to_thread import run_sync
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine

from aiokwire import Admin, Consumer, TopicPartition
from aiokwire.admin import NewTopic
from aiokwire.outbox import Outbox, outbox_id
from integration.embedded import at_full_speed
from integration.kafka import KafkaServer
from integration.postgres import PostgresServer

TOPIC: Final = "orders"
PARTITIONS: Final = 4
WRITERS: Final = 8
ROLLED_BACK: Final = 0.1
PATIENCE: Final = 90.0

metadata = sa.MetaData()
counters = sa.Table("counters", metadata, sa.Column("key", sa.String, primary_key=True), sa.Column("n", sa.Integer))
outbox = Outbox(metadata)


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """The size of a run."""

    transactions: int = 20_000
    keys: int = 50
    kills: int = 4
    database_kills: int = 2
    broker_kills: int = 2
    seed: int = 1


@dataclasses.dataclass(slots=True)
class Outcome:
    """The result of a run."""

    committed: int = 0
    stored: int = 0
    again: int = 0
    seconds: float = 0.0
    wrong: list[str] = dataclasses.field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.committed:,} transactions committed in {self.seconds:.1f} s; {self.stored:,} records stored, "
            f"{self.again:,} of them repetitions"
        )


class Run:
    """One run."""

    def __init__(self, server: KafkaServer, database: PostgresServer, plan: Plan) -> None:
        self._server = server
        self._database = database
        self._plan = plan
        self._rng = random.Random(plan.seed)
        self._relays: list[subprocess.Popen[bytes]] = []
        self._done = 0

    async def run(self) -> Outcome:
        """Run, and check."""
        began = time.perf_counter()
        engine = create_async_engine(self._database.url, pool_size=WRITERS)
        outcome = Outcome()
        try:
            await self._prepare(engine)
            self._start_relay()
            self._start_relay()
            async with anyio.create_task_group() as group:
                group.start_soon(self._disturb)
                for number in range(WRITERS):
                    group.start_soon(self._write, engine, random.Random(self._plan.seed * 1000 + number))
            await self._drain(engine, outcome)
            outcome.seconds = time.perf_counter() - began
            await self._check(engine, outcome)
        finally:
            for each in self._relays:
                each.kill()
                each.wait()
            await engine.dispose()
        return outcome

    async def _prepare(self, engine: AsyncEngine) -> None:
        async with engine.begin() as connection:
            await connection.run_sync(metadata.create_all)
            rows = [{"key": f"k{number}", "n": 0} for number in range(self._plan.keys)]
            await connection.execute(counters.insert(), rows)
        async with Admin(self._server.bootstrap_servers) as admin:
            (await admin.create_topics([NewTopic(TOPIC, PARTITIONS)])).check()

    def _start_relay(self) -> None:
        command = [sys.executable, "-m", "aiokwire", "outbox", "-b", self._server.bootstrap_servers]
        environment = {**os.environ, "AIOKWIRE_OUTBOX_DATABASE": self._database.url}
        self._relays.append(subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL))

    async def _write(self, engine: AsyncEngine, rng: random.Random) -> None:
        while self._done < self._plan.transactions:
            self._done += 1
            try:
                await self._change(engine, f"k{rng.randrange(self._plan.keys)}", rng.random() < ROLLED_BACK)
            except (SQLAlchemyError, OSError):
                await anyio.sleep(0.1)
            except Exception as error:  # of the driver, while the database starts
                if not type(error).__module__.startswith("asyncpg"):
                    raise
                await anyio.sleep(0.1)

    async def _change(self, engine: AsyncEngine, key: str, is_rolled_back: bool) -> None:
        async with AsyncSession(engine) as session:
            change = counters.update().where(counters.c.key == key).values(n=counters.c.n + 1).returning(counters.c.n)
            number = await session.scalar(change)
            await outbox.add(session, TOPIC, b"%d" % number, key.encode())
            if is_rolled_back:
                await session.rollback()
            else:
                await session.commit()

    async def _disturb(self) -> None:
        plan = self._plan
        faults = ["relay"] * plan.kills + ["database"] * plan.database_kills + ["broker"] * plan.broker_kills
        self._rng.shuffle(faults)
        for number, fault in enumerate(faults):
            while self._done < plan.transactions * (number + 1) // (len(faults) + 1):  # noqa: ASYNC110 - of other tasks
                await anyio.sleep(0.02)
            if fault == "relay":
                victim = self._relays.pop(0)  # the one that started first leads
                victim.send_signal(signal.SIGKILL)
                await run_sync(victim.wait)
                self._start_relay()
            elif fault == "database":
                await run_sync(self._database.kill)
                await run_sync(self._database.restart)
            else:
                await run_sync(self._server.kill)
                await anyio.sleep(self._rng.uniform(0, 1))
                await run_sync(self._server.restart)

    async def _drain(self, engine: AsyncEngine, outcome: Outcome) -> None:
        """Wait until the outbox is empty."""
        with anyio.move_on_after(PATIENCE):
            while True:
                async with engine.connect() as connection:
                    if not await connection.scalar(sa.select(sa.func.count()).select_from(outbox.table)):
                        return
                await anyio.sleep(0.1)
        outcome.wrong.append(f"the outbox was not empty after {PATIENCE:.0f} s")

    async def _check(self, engine: AsyncEngine, outcome: Outcome) -> None:
        async with engine.connect() as connection:
            expected = {row.key: row.n for row in await connection.execute(sa.select(counters))}
        outcome.committed = sum(expected.values())
        found = await self._values(outcome)
        for key, number in expected.items():
            if found[key] != list(range(1, number + 1)):
                outcome.wrong.append(f"{key}: {_difference(found[key], number)}")

    async def _values(self, outcome: Outcome) -> dict[str, list[int]]:
        """Return the values of each key in order, without repeated ids."""
        seen: set[str | None] = set()
        found: dict[str, list[int]] = defaultdict(list)
        partitions = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
        async with Consumer(
            partitions=partitions, bootstrap_servers=self._server.bootstrap_servers, auto_offset_reset="earliest"
        ) as consumer:
            ends = await consumer.end_offsets(partitions)
            while any([await consumer.position(tp) < ends[tp] for tp in partitions]):
                for record in await consumer.getmany(timeout=1):
                    outcome.stored += 1
                    uid = outbox_id(record)
                    if uid in seen:
                        outcome.again += 1
                        continue
                    seen.add(uid)
                    found[(record.key or b"").decode()].append(int(record.value or b""))
        return found


def _difference(found: list[int], number: int) -> str:
    missing = set(range(1, number + 1)) - set(found)
    extra = set(found) - set(range(1, number + 1))
    falls = [pair for pair in itertools.pairwise(found) if pair[0] >= pair[1]]
    return f"{len(missing)} missing, {len(extra)} unknown, {len(falls)} out of order: {falls[:3]}"


def main() -> int:
    """Run at full size."""
    parser = argparse.ArgumentParser(prog="python -m integration.outbox.kills", description=__doc__)
    parser.add_argument("--broker", default="embedded", help="embedded, or a release of Kafka")
    for field in dataclasses.fields(Plan):
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=type(field.default), default=field.default)
    given = vars(parser.parse_args())
    broker = given.pop("broker")
    logging.getLogger("aiokwire").setLevel(logging.CRITICAL)  # outages are expected
    with ExitStack() as stack:
        server = stack.enter_context(at_full_speed(broker))
        database = stack.enter_context(PostgresServer())
        outcome = uvloop.run(Run(server, database, Plan(**given)).run())
    print(outcome)
    for fault in outcome.wrong:
        print(f"WRONG: {fault}")
    return 1 if outcome.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
