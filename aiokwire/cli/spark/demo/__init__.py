"""`aiokwire spark demo`: hourly delays by airline through a pipeline that is killed in the middle of a transaction.

```
hourly_delays.toml   the pipeline, as `aiokwire spark run` takes it
process.py           the pipeline as a process of its own, to be killed and started again
work.py              flights in, kill, delays out; what everybody saw
direct.py            the same delays computed without Kafka and Spark, and the comparison
report.py            the table, the plot, and the check whose result is the exit status
```
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from aiokwire.cli.demo.frame import demo_options
from aiokwire.cli.running import FAILED, run


@click.command("demo")
@demo_options(
    "demo-output/spark",
    holds="Where the broker's log, the checkpoint, Spark's log and the plot go.",
    kill="Kill the pipeline on the way with SIGKILL.",
)
def command(output: Path, kill: bool) -> None:
    """Compute a year of hourly delays by airline with Spark, exactly once.

    A producer sends every flight to the embedded broker; a declared pipeline adds up each hour of each airline and
    writes it to a topic in transactions. It is killed while one is open, and started again. The exit status is 0 when
    a read_committed reader finds each hour once, with the figures of a direct computation.
    """
    from aiokwire.cli.spark.demo.process import java_problem

    problem = java_problem()
    if problem is not None:
        print(f"error: {problem}", file=sys.stderr)
        sys.exit(FAILED)

    async def demo() -> int:
        from aiokwire.cli.spark.demo.report import check, show
        from aiokwire.cli.spark.demo.work import hourly_delays

        outcome = await hourly_delays(output, kill=kill)
        show(outcome, output)
        return 0 if check(outcome) else FAILED

    run(demo)
