"""Six members of a group over 24 partitions are restarted one after the other, while records flow.

`python -m integration.chaos.rolling` runs it with each protocol and prints a table, with `--killed` for members that
are processes and get SIGKILL; `test_rolling.py` small. It ends with status 1 when a promise was not kept: no record
lost, none handed over again but what a killed member had not committed, no partition that stays with its member stops
for over 100 ms, and static members cause no rebalance, but for killed ones of KIP-848: the broker lets nobody have
their name before their session ends.

A stop is told in three ways: as the clock has it; less the time in which the processes themselves waited for a core;
and as the time by which a record came later to its member than to a reader that is in no group: what the group is to
blame for. The promise is broken when the latter two are too long.
"""

from __future__ import annotations

import argparse
import logging
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import anyio
import uvloop
from rich.console import Console
from rich.table import Table

from aiokwire import Admin
from integration.chaos.account import Pauses
from integration.chaos.group import PROTOCOLS, Group, GroupFailed, open_group
from integration.chaos.moment import now
from integration.chaos.rebalances import Rebalances
from integration.embedded import at_full_speed

MEMBERS: Final = 6
PARTITIONS: Final = 24
STOP_ALLOWED: Final = 0.1  # seconds
# The protocols whose members cause no rebalance, when they are closed and when they are killed.
NO_REBALANCE: Final = {False: ("static", "consumer-static"), True: ("static",)}

_AWAY_SECONDS: Final = 0.3  # between the end of a member and its next start
_DWELL_SECONDS: Final = 1.0  # after each restart

# The shortest time after which brokers take a member for dead, so that a run with kills is short: as a member asks for
# it, and as a broker has it for members of KIP-848.
SOON: Final = {"session_timeout_ms": 6_000}
SOON_BROKER: Final = {
    "group.consumer.min.session.timeout.ms": 6_000,
    "group.consumer.session.timeout.ms": 6_000,
    "group.consumer.min.heartbeat.interval.ms": 2_000,
    "group.consumer.heartbeat.interval.ms": 2_000,
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to; seconds, of all restarts together."""

    protocol: str
    restarts: int
    rebalances: int
    calm: Pauses  # before the restarts
    rolling: Pauses
    starved: float  # seconds in which this process waited for a core during the restarts
    seconds: float
    records: int
    doubled: int
    uncommitted: int  # what killed members had not committed
    wrong: list[str]


async def roll(
    bootstrap: str,
    protocol: str,
    *,
    restarts: int,
    calm: float,
    rate: float,
    killed: bool = False,
    stop_allowed: float = STOP_ALLOWED,
    log: Path | None = None,
) -> Outcome:
    """One run with one protocol. `log`: a directory for what members log that are processes."""
    seen: set[int] = set()
    with Rebalances(seen.add):
        size = {"partitions": PARTITIONS, "size": MEMBERS}
        async with open_group(bootstrap, **size, rate=rate, apart=killed, bystander=True, log=log) as group:
            options = PROTOCOLS[protocol] | (SOON if killed else {})
            for name in group.names:
                await group.start(name, options)
            await group.settled(PARTITIONS)
            await group.until(lambda: group.account.has_all(1), "a first record of each partition")
            group.account.new_phase()
            await anyio.sleep(calm)
            quiet = group.account.new_phase()
            began, epoch = now(), await _epoch(bootstrap, group, seen)
            rolling = await _restart(group, options, restarts, killed=killed)
            ended, rebalances = now(), await _epoch(bootstrap, group, seen) - epoch
            await group.finish()
    allowed = 0 if protocol in NO_REBALANCE[killed] else None
    wrong = [*group.wrong(), *_broken(group, rolling, rebalances, allowed, stop_allowed)]
    account = group.account
    return Outcome(
        protocol,
        restarts,
        rebalances,
        quiet,
        rolling,
        ended.starved - began.starved,
        ended.at - began.at,
        account.records,
        account.doubled,
        group.uncommitted,
        wrong,
    )


async def _restart(group: Group, options: dict[str, Any], restarts: int, *, killed: bool) -> Pauses:
    """One member after the other; the next only when all partitions are shared out again. Gives the pauses meanwhile.

    Processes that take the place of others are made before, as if elsewhere: that is not what is measured."""
    rolling = group.account.new_phase()
    for number in range(restarts):
        name = group.names[number % MEMBERS]
        if killed:
            await group.prepare(name, options)
            await anyio.sleep(_DWELL_SECONDS)
            group.account.new_phase()
            await group.kill(name)
        else:
            await group.stop(name)
        await anyio.sleep(_AWAY_SECONDS)
        await group.start(name, options)
        await group.settled(PARTITIONS)
        await anyio.sleep(_DWELL_SECONDS)
        rolling = rolling.longest(group.account.new_phase())
    return rolling


async def _epoch(bootstrap: str, group: Group, seen: set[int]) -> int:
    """A number that grows by one with each rebalance."""
    async with Admin(bootstrap) as admin:
        described = await admin.describe_groups([group.id])
    epoch = described[group.id].epoch
    return len(seen | group.generations) if epoch is None else epoch


def _broken(
    group: Group, rolling: Pauses, rebalances: int, rebalances_allowed: int | None, stop_allowed: float
) -> list[str]:
    wrong = []
    stops = [min(pair) for pair in zip(rolling.own, rolling.late, strict=True)]
    stopped = {number: pause for number, pause in enumerate(stops) if pause > stop_allowed}
    if stopped:
        worst = max(stopped, key=stopped.__getitem__)
        wrong.append(
            f"{len(stopped)} partition(s) stayed with their members, which were handed nothing for over "
            f"{stop_allowed * 1e3:.0f} ms; the worst: {worst}, {stopped[worst] * 1e3:.0f} ms"
        )
    if group.account.doubled > group.uncommitted:
        wrong.append(f"{group.account.doubled} record(s) were handed over again, {group.uncommitted} were uncommitted")
    if group.lost_partitions:
        wrong.append(f"{group.lost_partitions} time(s) a partition was lost, instead of given up")
    if rebalances_allowed is not None and rebalances > rebalances_allowed:
        wrong.append(f"static members, and yet {rebalances} rebalance(s)")
    return wrong


def table_of(broker: str, outcomes: list[Outcome], *, killed: bool = False) -> Table:
    """One line for each protocol."""
    what = "killed and started again" if killed else "restarted"
    title = f"{broker}: {MEMBERS} members, {PARTITIONS} partitions, members {what}; pauses in ms, the longest of each"
    table = Table(title=title)
    columns = ("protocol", "restarts", "rebalances", "calm", "calm, own", "stayed", "stayed, own", "late")
    for column in (*columns, "moved", "seconds", "starved, s", "records", "doubled", "uncommitted", "verdict"):
        table.add_column(column, justify="right")
    for each in outcomes:
        calm, rolling = each.calm, each.rolling
        pauses = [max(one) for one in (calm.stayed, calm.own, rolling.stayed, rolling.own)]
        pauses += [max(rolling.late), max(rolling.moved)]
        table.add_row(
            each.protocol,
            str(each.restarts),
            str(each.rebalances),
            *(f"{pause * 1e3:.1f}" for pause in pauses),
            f"{each.seconds:.1f}",
            f"{each.starved:.2f}",
            f"{each.records:,}",
            str(each.doubled),
            str(each.uncommitted),
            "WRONG" if each.wrong else "kept",
        )
    return table


def first_of(error: BaseException) -> BaseException:
    """The first error in a group of them."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def main() -> int:
    """At full size."""
    parser = argparse.ArgumentParser(prog="python -m integration.chaos.rolling", description=__doc__)
    parser.add_argument("--broker", default="embedded", help="embedded, or a release of Kafka")
    parser.add_argument("--protocols", default=",".join(PROTOCOLS), help="comma-separated")
    parser.add_argument("--killed", action="store_true", help="members are processes, and get SIGKILL")
    parser.add_argument("--restarts", type=int, default=MEMBERS)
    parser.add_argument("--calm", type=float, default=5.0, help="seconds before the restarts, to compare with")
    parser.add_argument("--rate", type=float, default=50.0, help="records a second to each partition")
    parser.add_argument("--log", type=Path, help="a directory to keep what killed members log in")
    given = parser.parse_args()
    logging.getLogger("aiokwire").setLevel(logging.ERROR)
    console = Console(width=None if sys.stdout.isatty() else 180)
    outcomes = []
    broken = ""  # why a run could not be ended
    try:
        with at_full_speed(given.broker, settings=SOON_BROKER if given.killed else None) as server:
            for protocol in given.protocols.split(","):
                work = roll(
                    server.bootstrap_servers,
                    protocol,
                    restarts=given.restarts,
                    calm=given.calm,
                    rate=given.rate,
                    killed=given.killed,
                    log=given.log,
                )
                outcomes.append(uvloop.run(work))
    except* GroupFailed as failed:  # out of the group's tasks
        broken = f"{protocol}: {first_of(failed)}"
    finally:
        console.print(table_of(given.broker, outcomes, killed=given.killed))
    for outcome in outcomes:
        for told in outcome.wrong:
            console.print(f"WRONG: {outcome.protocol}: {told}")
    if broken:
        console.print(f"FAILED: {broken}", soft_wrap=True)
    return 1 if broken or any(outcome.wrong for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
