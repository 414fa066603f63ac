"""Restart six members of a group over 24 partitions, one at a time, under load.

`python -m integration.chaos.rolling` runs with each protocol and prints a table; with `--killed`,
members are processes and get SIGKILL; `test_rolling.py` is a small run. It exits with status 1
unless:
- no record is lost, and only records that a killed member had not committed are delivered again;
- no partition that stays with its member stops for more than 100 ms;
- static members cause no rebalance, except killed ones of KIP-848: the broker rejects their
  instance id until their session expires.

A stop is measured in three ways: by the clock; minus the time in which the processes waited for a
core; and as the delay of a record at its member after a reader without a group, which is the
group's share. It is too long when the latter two are.
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
# The protocols in which closed (False) or killed (True) members cause no rebalance.
NO_REBALANCE: Final = {False: ("static", "consumer-static"), True: ("static",)}

_AWAY_SECONDS: Final = 0.3  # between the end of a member and its next start
_DWELL_SECONDS: Final = 1.0  # after each restart

# The shortest session timeout, so that a run with kills is short: requested by a member of the classic protocol, and
# configured in the broker for members of KIP-848.
SOON: Final = {"session_timeout_ms": 6_000}
SOON_BROKER: Final = {
    "group.consumer.min.session.timeout.ms": 6_000,
    "group.consumer.session.timeout.ms": 6_000,
    "group.consumer.min.heartbeat.interval.ms": 2_000,
    "group.consumer.heartbeat.interval.ms": 2_000,
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run; times in seconds, for all restarts together."""

    protocol: str
    restarts: int
    rebalances: int
    calm: Pauses  # before the restarts
    rolling: Pauses
    starved: float  # seconds that this process waited for a core during the restarts
    seconds: float
    records: int
    duplicates: int
    uncommitted: int  # records that killed members had not committed
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
    """Run with one protocol. `log`: the directory for the logs of member processes."""
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
        account.duplicates,
        group.uncommitted,
        wrong,
    )


async def _restart(group: Group, options: dict[str, Any], restarts: int, *, killed: bool) -> Pauses:
    """Restart one member after the other, and return the pauses.

    Processes that replace killed ones are started before the kill: their start is not part of the
    measurement.
    """
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
    """Return a number that grows by one with each rebalance."""
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
            f"{len(stopped)} partition(s) stayed with their members, which received nothing for over "
            f"{stop_allowed * 1e3:.0f} ms; the longest stop: partition {worst}, {stopped[worst] * 1e3:.0f} ms"
        )
    if group.account.duplicates > group.uncommitted:
        wrong.append(f"{group.account.duplicates} record(s) were received again, {group.uncommitted} were uncommitted")
    if group.lost_partitions:
        wrong.append(f"partitions were lost instead of revoked {group.lost_partitions} time(s)")
    if rebalances_allowed is not None and rebalances > rebalances_allowed:
        wrong.append(f"static members caused {rebalances} rebalance(s)")
    return wrong


def table_of(broker: str, outcomes: list[Outcome], *, killed: bool = False) -> Table:
    """Return a table with a line for each protocol."""
    what = "killed and restarted" if killed else "restarted"
    title = f"{broker}: {MEMBERS} members, {PARTITIONS} partitions, members {what}; longest pauses in ms"
    table = Table(title=title)
    columns = ("protocol", "restarts", "rebalances", "calm", "calm, own", "stayed", "stayed, own", "late")
    for column in (*columns, "moved", "seconds", "starved, s", "records", "duplicates", "uncommitted", "verdict"):
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
            str(each.duplicates),
            str(each.uncommitted),
            "WRONG" if each.wrong else "kept",
        )
    return table


def first_of(error: BaseException) -> BaseException:
    """Return the first leaf of an exception group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def main() -> int:
    """Run at full size."""
    parser = argparse.ArgumentParser(prog="python -m integration.chaos.rolling", description=__doc__)
    parser.add_argument("--broker", default="embedded", help="embedded, or a release of Kafka")
    parser.add_argument("--protocols", default=",".join(PROTOCOLS), help="comma-separated")
    parser.add_argument("--killed", action="store_true", help="run members as processes that get SIGKILL")
    parser.add_argument("--restarts", type=int, default=MEMBERS)
    parser.add_argument("--calm", type=float, default=5.0, help="seconds before the restarts, for comparison")
    parser.add_argument("--rate", type=float, default=50.0, help="records per second and partition")
    parser.add_argument("--log", type=Path, help="directory for the logs of killed members")
    given = parser.parse_args()
    logging.getLogger("aiokwire").setLevel(logging.ERROR)
    console = Console(width=None if sys.stdout.isatty() else 180)
    outcomes = []
    broken = ""  # why a run could not finish
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
    except* GroupFailed as failed:  # raised in the group's tasks
        broken = f"{protocol}: {first_of(failed)}"
    finally:
        console.print(table_of(given.broker, outcomes, killed=given.killed))
    for outcome in outcomes:
        for fault in outcome.wrong:
            console.print(f"WRONG: {outcome.protocol}: {fault}")
    if broken:
        console.print(f"FAILED: {broken}", soft_wrap=True)
    return 1 if broken or any(outcome.wrong for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
