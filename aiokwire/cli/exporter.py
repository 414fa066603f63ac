"""`aiokwire exporter`: the lag of all groups of a cluster, for Prometheus over HTTP."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

import anyio
import click

from aiokwire.cli.connection import bootstrap_option, connect_options
from aiokwire.cli.metrics_server import serve_metrics
from aiokwire.cli.running import run
from aiokwire.clock import loop_time
from aiokwire.errors import KafkaError
from aiokwire.metrics import DESTINATION, GROUP, PARTITION, Metric, Sample
from aiokwire.types import TopicPartition

if TYPE_CHECKING:
    from aiokwire import Admin
    from aiokwire.admin import PartitionLag

    Lags: TypeAlias = dict[str, dict[TopicPartition, PartitionLag]]  # by group

LAG: Final = Metric(
    "kafka.consumer_group.lag",
    "gauge",
    "{message}",
    "Offsets from the committed one to the end of the partition.",
    (GROUP, DESTINATION, PARTITION),
)
COMMITTED: Final = Metric(
    "kafka.consumer_group.offset",
    "gauge",
    "{offset}",
    "The committed offset: its rate is that of finished records.",
    (GROUP, DESTINATION, PARTITION),
)
END: Final = Metric(
    "kafka.partition.current_offset",
    "gauge",
    "{offset}",
    "Offset of the next record, of partitions that a group reads.",
    (DESTINATION, PARTITION),
)
GROUPS: Final = Metric("kafka.exporter.group.count", "gauge", "{group}", "Groups that the last round checked.")
FAILURES: Final = Metric(
    "kafka.exporter.failure", "counter", "{failure}", "Failed attempts to list the groups or to read a group's lag."
)
TOOK: Final = Metric("kafka.exporter.duration", "gauge", "s", "How long the last round took.")
METRICS: Final = (LAG, COMMITTED, END, GROUPS, FAILURES, TOOK)

AT_ONCE: Final = 8  # groups whose lag is read concurrently


class GroupLags:
    """The lag of groups, as of the last round. Rounds run on the loop, readers in any thread."""

    METRICS: ClassVar[tuple[Metric, ...]] = METRICS

    def __init__(self, admin: Admin, wanted: re.Pattern[str]) -> None:
        self._admin = admin
        self._wanted = wanted
        self._failures = 0
        self._samples: list[Sample] = []

    def metrics(self) -> list[Sample]:
        """Return the samples of the last round."""
        return [*self._samples, FAILURES.sample(self._failures, {})]

    async def measure(self, timeout: float) -> None:
        """Read the lag of all groups. A group that cannot be read is left out, and counted."""
        began = loop_time()
        try:
            listed = await self._admin.list_groups(timeout=timeout)
        except KafkaError as error:
            self._fail("the groups", error)
            return
        names = [one.group_id for one in listed if self._wanted.fullmatch(one.group_id)]
        lags: Lags = {}
        limit = anyio.CapacityLimiter(AT_ONCE)
        async with anyio.create_task_group() as tasks:
            for name in names:
                tasks.start_soon(self._read, name, timeout, limit, lags)
        took = loop_time() - began
        self._samples = [*samples_of(lags), GROUPS.sample(len(names), {}), TOOK.sample(took, {})]

    async def _read(self, name: str, timeout: float, limit: anyio.CapacityLimiter, lags: Lags) -> None:
        async with limit:
            try:
                lags[name] = await self._admin.group_lag(name, timeout=timeout)
            except KafkaError as error:
                self._fail(f"group {name!r}", error)

    def _fail(self, what: str, error: Exception) -> None:
        self._failures += 1
        click.echo(f"{what}: not measured, retrying in the next round: {error}", err=True)


def samples_of(lags: Lags) -> list[Sample]:
    """Return the samples of groups."""
    found: list[Sample] = []
    ends: dict[TopicPartition, int] = {}
    for group, partitions in lags.items():
        for tp, one in partitions.items():
            ends[tp] = one.end
            place = (tp.topic, str(tp.partition))
            if one.committed is not None and one.lag is not None:
                found.append(LAG.sample(one.lag, {}, group, *place))
                found.append(COMMITTED.sample(one.committed.offset, {}, group, *place))
    return found + [END.sample(end, {}, tp.topic, str(tp.partition)) for tp, end in ends.items()]


@click.command("exporter")
@bootstrap_option
@click.option(
    "--listen",
    default="127.0.0.1:9308",
    show_default=True,
    metavar="HOST:PORT",
    help="Address of the HTTP server. Port 0 picks a free port.",
)
@click.option(
    "--interval", type=click.FloatRange(min=0.1), default=15.0, show_default=True, help="Seconds between two rounds."
)
@click.option("--group", "pattern", default=".*", metavar="REGEX", help="Only groups whose whole name matches.")
def command(*, bootstrap: str, listen: str, interval: float, pattern: str) -> None:
    """Serve the lag of all groups to Prometheus, until Ctrl-C."""
    try:
        wanted = re.compile(pattern)
    except re.error as error:
        raise click.BadParameter(f"not a regular expression: {error}", param_hint="--group") from None

    async def serve() -> None:
        from aiokwire import Admin

        async with Admin(bootstrap, **connect_options()) as admin:
            lags = GroupLags(admin, wanted)
            async with serve_metrics(listen, lags, admin) as url:
                await lags.measure(interval)
                print(f"serving metrics at {url}", flush=True)
                while True:
                    await anyio.sleep(interval)
                    await lags.measure(max(interval, 1.0))

    run(serve, until_stopped=True)
