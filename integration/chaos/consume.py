"""A group of three reads while its broker is killed, stopped and frozen at random: it goes on by itself, always.

`python -m integration.chaos.consume` runs it for ten minutes and prints how long each resumption took;
`test_consume.py` small. It ends with status 1 when a record was lost, left out or out of order, or when it took longer
than five seconds from the broker's return until every partition was read again.
"""

from __future__ import annotations

import argparse
import functools
import logging
import random
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import anyio
import uvloop

from integration.chaos.faults import Fault, Kind, inflict
from integration.chaos.group import PROTOCOLS, Group, GroupFailed, open_group
from integration.chaos.moment import now
from integration.embedded import EmbeddedProcess
from integration.kafka import KafkaServer, RealKafka

MEMBERS: Final = 3
PARTITIONS: Final = 12
RESUME_ALLOWED: Final = 5.0  # seconds
OPTIONS: Final = {"session_timeout_ms": 10_000}  # shorter than some outages

_BETWEEN_SECONDS: Final = 0.0, 3.0  # from one resumption to the next fault
_AT_ONCE: Final = 0.25  # how many faults come before everything has resumed
_AT_ONCE_SECONDS: Final = 1.0

Tell = Callable[[str], None]


@dataclass(slots=True)
class Outcome:
    """What a run came to."""

    resumptions: list[float] = field(default_factory=list)  # seconds from a return to the last partition
    faults: int = 0
    records: int = 0
    doubled: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        taken = sorted(self.resumptions) or [0.0]
        return (
            f"{self.faults} faults, {len(self.resumptions)} resumptions: median {statistics.median(taken):.2f} s, "
            f"longest {taken[-1]:.2f} s; {self.records:,} records handed over, {self.doubled:,} of them again"
        )


class Chaos:
    """One run: a group under load, and what befalls its broker."""

    def __init__(self, server: KafkaServer, group: Group, rng: random.Random, tell: Tell) -> None:
        self._server = server
        self._group = group
        self._rng = rng
        self._tell = tell
        self._outcome = Outcome()

    async def run(self, seconds: float, longest: float, protocol: str) -> Outcome:
        """Faults for so long, then the verdict. A broker is away for up to `longest` seconds."""
        group, outcome = self._group, self._outcome
        for name in group.names:
            await group.start(name, OPTIONS | PROTOCOLS[protocol])
        await group.settled(PARTITIONS)
        await group.until(lambda: group.account.has_all(1), "a first record of each partition")
        try:
            ends = anyio.current_time() + seconds
            while anyio.current_time() < ends or not outcome.faults:
                await self._disturb(longest)
            await group.finish()
        except GroupFailed as failed:
            outcome.wrong.append(str(failed))
        outcome.records, outcome.doubled = group.account.records, group.account.doubled
        outcome.wrong += group.wrong()
        return outcome

    async def _disturb(self, longest: float) -> None:
        rng = self._rng
        told = []
        while True:  # until one is let pass
            kind = rng.choice(list(Kind))
            fault = Fault(kind, 0, rng.uniform(*_BETWEEN_SECONDS), rng.uniform(0.0, longest))
            away = await inflict(self._server, fault)
            self._outcome.faults += 1
            told.append(f"{kind.value}, away for {away:.1f} s")
            if rng.random() >= _AT_ONCE:
                break
            await anyio.sleep(rng.uniform(0.0, _AT_ONCE_SECONDS))
        await self._resume("; ".join(told))

    async def _resume(self, what: str) -> None:
        account, returned = self._group.account, now().at
        await self._group.until(lambda: account.newest() > returned, f"after {what}: a first record")
        first = now().at - returned
        await self._group.until(lambda: account.oldest() > returned, f"after {what}: a record of each partition")
        taken = now().at - returned
        self._outcome.resumptions.append(taken)
        self._tell(f"  {what}: resumed after {first:.2f} s, every partition after {taken:.2f} s")
        if taken > RESUME_ALLOWED:
            self._outcome.wrong.append(f"after {what} it took {taken:.2f} s until every partition was read again")


async def run(
    server: KafkaServer,
    *,
    seconds: float,
    protocol: str = "cooperative",
    longest: float = 15.0,
    rate: float = 50.0,
    seed: int = 1,
    tell: Tell = print,
) -> Outcome:
    """Everything, with a verdict."""
    async with open_group(server.bootstrap_servers, partitions=PARTITIONS, size=MEMBERS, rate=rate) as group:
        return await Chaos(server, group, random.Random(seed), tell).run(seconds, longest, protocol)


def main() -> int:
    """At full size."""
    parser = argparse.ArgumentParser(prog="python -m integration.chaos.consume", description=__doc__)
    parser.add_argument("--broker", default="embedded", help="embedded, or a release of Kafka")
    parser.add_argument("--protocol", default="cooperative", choices=PROTOCOLS)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--longest", type=float, default=15.0, help="seconds that a broker is away, at most")
    parser.add_argument("--rate", type=float, default=50.0, help="records a second to each partition")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    logging.getLogger("aiokwire").setLevel(logging.CRITICAL)  # a broker that goes away is the point here
    server: KafkaServer = EmbeddedProcess() if given.broker == "embedded" else RealKafka(given.broker, full_speed=True)
    print(
        f"{given.broker}, {given.protocol}: {MEMBERS} members, {given.minutes} minutes, seed {given.seed}", flush=True
    )
    server.start()
    try:
        work = run(
            server,
            seconds=60 * given.minutes,
            protocol=given.protocol,
            longest=given.longest,
            rate=given.rate,
            seed=given.seed,
            tell=functools.partial(print, flush=True),
        )
        outcome = uvloop.run(work)
    finally:
        server.close()
    print(outcome)
    for told in outcome.wrong:
        print(f"WRONG: {told}")
    if not outcome.wrong:
        print("every record was handed over, in order, and reading resumed in time")
    return 1 if outcome.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
