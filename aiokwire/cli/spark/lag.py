"""`aiokwire spark lag CHECKPOINT`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from aiokwire.cli.connection import bootstrap_option, connect_options
from aiokwire.cli.output import print_json, print_table
from aiokwire.cli.running import FAILED, run

if TYPE_CHECKING:
    from aiokwire.spark.pipelines import PartitionLag

_HEADS = ("query", "source", "batch", "topic", "partition", "position", "end", "lag")


@click.command("lag")
@click.argument("checkpoint")
@bootstrap_option
@click.option(
    "--committed", is_flag=True, help="Measure to the last stable offset, up to which a read_committed source reads."
)
@click.option(
    "--max-lag",
    type=click.IntRange(min=0),
    help="Exit with status 1 if the lag of a partition exceeds this number of offsets.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line, one for each partition.")
def command(checkpoint: str, *, bootstrap: str, committed: bool, max_lag: int | None, as_json: bool) -> None:
    """Show the lag of the streaming queries of CHECKPOINT.

    CHECKPOINT is the checkpoint folder or URI of a query, or of a pipeline of `aiokwire spark run`,
    which has a folder for each of its queries. Needs neither Spark nor Java, nor a running query.
    """

    async def show() -> int:
        from aiokwire import Admin
        from aiokwire.spark.pipelines import find_lag, read_positions
        from aiokwire.threads import run_in_thread

        positions = await run_in_thread(read_positions, checkpoint)
        async with Admin(bootstrap, **connect_options()) as admin:
            found = await find_lag(admin, positions, committed=committed)
        _print(found, as_json=as_json)
        return FAILED if max_lag is not None and any((each.lag or 0) > max_lag for each in found) else 0

    run(show)


def _print(found: Sequence[PartitionLag], *, as_json: bool) -> None:
    rows = [_row(each) for each in found]
    if as_json:
        for row in rows:
            print_json(dict(zip(_HEADS, row, strict=True)))
    else:
        total = sum(each.lag or 0 for each in found)
        cells = [["-" if cell is None else cell for cell in row] for row in rows]
        print_table(f"{total:,} offsets behind", _HEADS, cells)


def _row(each: PartitionLag) -> tuple[str | int | None, ...]:
    return (
        each.query, each.source, each.batch_id, each.topic, each.partition, each.position, each.end, each.lag,
    )  # fmt: skip
