"""A group of three recovers while its broker and members are killed, stopped and frozen.

`python -m integration.chaos.consume` runs for ten minutes and prints how long each recovery took;
`test_consume.py` is a small run. It exits with status 1 if a record was lost, skipped, out of
order, or delivered again after it was committed, or if a partition was not read within five seconds
of the broker's return. For the partitions of a killed member the limit is its session timeout plus
five seconds.
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
from pathlib import Path
from typing import Any, Final

import anyio
import uvloop

from integration.chaos.account import Resumed
from integration.chaos.apart import log_to
from integration.chaos.faults import Fault, Kind, inflict
from integration.chaos.group import PROTOCOLS, Group, GroupFailed, open_group
from integration.chaos.moment import now
from integration.chaos.rolling import SOON_BROKER
from integration.embedded import at_full_speed
from integration.kafka import KafkaServer

MEMBERS: Final = 3
PARTITIONS: Final = 12
RESUME_ALLOWED: Final = 5.0  # seconds
OPTIONS: Final = {"session_timeout_ms": 10_000}  # shorter than some outages

_BETWEEN_SECONDS: Final = 0.0, 3.0  # from one resumption to the next fault
_AT_ONCE: Final = 0.25  # the share of faults that another fault follows before recovery
_AT_ONCE_SECONDS: Final = 1.0
_MEMBER_KILLED: Final = 0.25  # the share of disturbances that start with the kill of a member, if members are processes
_SESSION: Final = OPTIONS["session_timeout_ms"] / 1000

Report = Callable[[str], None]


@dataclass(slots=True)
class Outcome:
    """The result of a run."""

    resumptions: list[float] = field(
        default_factory=list
    )  # seconds from the broker's return until every partition was read
    faults: int = 0
    killed: int = 0  # members
    records: int = 0
    duplicates: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        taken = sorted(self.resumptions) or [0.0]
        return (
            f"{self.faults} faults, {len(self.resumptions)} resumptions: median {statistics.median(taken):.2f} s, "
            f"longest {taken[-1]:.2f} s; {self.killed} members killed; {self.records:,} records received, "
            f"{self.duplicates:,} of them more than once"
        )


class Chaos:
    """One run: a group under load, and the faults of its broker."""

    def __init__(
        self, server: KafkaServer, group: Group, rng: random.Random, report: Report, kinds: list[Kind], *, apart: bool
    ) -> None:
        self._server = server
        self._kinds = kinds
        self._apart = apart
        self._group = group
        self._rng = rng
        self._report = report
        self._outcome = Outcome()

    async def run(self, seconds: float, longest: float, protocol: str) -> Outcome:
        """Inflict faults for `seconds`, then check.

        Each outage of the broker takes up to `longest` seconds.
        """
        group, outcome, options = self._group, self._outcome, OPTIONS | PROTOCOLS[protocol]
        for name in group.names:
            await group.start(name, options)
        await group.settled(PARTITIONS)
        await group.until(lambda: group.account.has_all(1), "a first record of each partition")
        try:
            ends = anyio.current_time() + seconds
            while anyio.current_time() < ends or not outcome.faults:
                orphans = frozenset[int]()
                if self._apart and self._rng.random() < _MEMBER_KILLED:
                    orphans = await self._kill_member(options)
                await self._disturb(longest, orphans)
            await group.finish()
        except GroupFailed as failed:
            outcome.wrong.append(str(failed))
        outcome.records, outcome.duplicates = group.account.records, group.account.duplicates
        outcome.wrong += group.wrong()
        return outcome

    async def _kill_member(self, options: dict[str, Any]) -> frozenset[int]:
        """Kill a member and start its replacement; return the partitions of the killed member."""
        name = self._rng.choice(self._group.names)
        orphans = await self._group.kill(name)
        await self._group.start(name, options)
        self._outcome.killed += 1
        return orphans

    async def _disturb(self, longest: float, orphans: frozenset[int]) -> None:
        rng = self._rng
        events = ["a member is killed"] if orphans else []
        while True:  # until a fault has no successor
            kind = rng.choice(self._kinds)
            fault = Fault(kind, 0, rng.uniform(*_BETWEEN_SECONDS), rng.uniform(0.0, longest))
            away = await inflict(self._server, fault)
            self._outcome.faults += 1
            events.append(f"{kind.value}, away for {away:.1f} s")
            if rng.random() >= _AT_ONCE:
                break
            await anyio.sleep(rng.uniform(0.0, _AT_ONCE_SECONDS))
        await self._resume("; ".join(events), orphans)

    async def _resume(self, what: str, orphans: frozenset[int]) -> None:
        account = self._group.account
        account.broker_returned(now().at)
        orphans |= await self._group.assigned_to_killed()
        theirs = frozenset(range(PARTITIONS)) - orphans
        text = f"  {what}: "
        if theirs:
            every = await self._all_of(theirs, what)
            first, slowest = min(every), max(every)
            self._outcome.resumptions.append(slowest.after)
            self._check(what, every, RESUME_ALLOWED)
            text += f"resumed after {first.after:.2f} s, every partition after {slowest.after:.2f} s"
            text += f" (its member waited {slowest.waited:.2f} s for a core since its previous record)"
        if orphans:
            dead = await self._all_of(orphans, what)
            self._check(f"{what}, partitions of the killed member", dead, RESUME_ALLOWED + _SESSION)
            text += f", those of the killed member after {max(each.after for each in dead):.2f} s"
        self._report(text)

    async def _all_of(self, partitions: frozenset[int], what: str) -> list[Resumed]:
        account = self._group.account
        check = f"after {what}: a record of each of {sorted(partitions)}"
        await self._group.until(lambda: len(account.resumed(partitions)) == len(partitions), check)
        return account.resumed(partitions)

    def _check(self, what: str, resumed: list[Resumed], allowed: float) -> None:
        slowest = max(resumed)
        if slowest.after > allowed:
            self._outcome.wrong.append(
                f"after {what}: the last partition was read after {slowest.after:.2f} s; its member waited "
                f"{slowest.waited:.2f} s for a core since its previous record"
            )


async def run(
    server: KafkaServer,
    *,
    seconds: float,
    protocol: str = "cooperative",
    longest: float = 15.0,
    rate: float = 50.0,
    seed: int = 1,
    report: Report = print,
    kinds: list[Kind] | None = None,
    apart: bool = False,
    log: Path | None = None,
) -> Outcome:
    """Run the group and return the result.

    `apart`: members are processes, are killed, too, and log to `log`.
    """
    async with open_group(
        server.bootstrap_servers, partitions=PARTITIONS, size=MEMBERS, rate=rate, apart=apart, log=log
    ) as group:
        chaos = Chaos(server, group, random.Random(seed), report, kinds or list(Kind), apart=apart)
        return await chaos.run(seconds, longest, protocol)


def main() -> int:
    """Run at full size."""
    parser = argparse.ArgumentParser(prog="python -m integration.chaos.consume", description=__doc__)
    parser.add_argument("--broker", default="embedded", help="embedded, or a release of Kafka")
    parser.add_argument("--protocol", default="cooperative", choices=PROTOCOLS)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--longest", type=float, default=15.0, help="longest outage of the broker, in seconds")
    parser.add_argument("--rate", type=float, default=50.0, help="records per second and partition")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", default=",".join(kind.name.lower() for kind in Kind), help="comma-separated")
    parser.add_argument("--killed", action="store_true", help="run members as processes, and kill them, too")
    parser.add_argument("--log", type=Path, help="directory for the clients' logs, one file for each process")
    given = parser.parse_args()
    logger = logging.getLogger("aiokwire")
    logger.setLevel(logging.CRITICAL)  # outages of the broker are expected
    if given.log is not None:
        log_to(given.log / "here.log")
    print(
        f"{given.broker}, {given.protocol}: {MEMBERS} members, {given.minutes} minutes, seed {given.seed}", flush=True
    )
    with at_full_speed(given.broker, settings=SOON_BROKER) as server:
        work = run(
            server,
            seconds=60 * given.minutes,
            protocol=given.protocol,
            longest=given.longest,
            rate=given.rate,
            seed=given.seed,
            report=functools.partial(print, flush=True),
            kinds=[Kind[name.upper()] for name in given.faults.split(",")],
            apart=given.killed,
            log=given.log,
        )
        outcome = uvloop.run(work)
    print(outcome)
    for fault in outcome.wrong:
        print(f"WRONG: {fault}")
    if not outcome.wrong:
        print("every record was received in order, and reading resumed in time")
    return 1 if outcome.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
