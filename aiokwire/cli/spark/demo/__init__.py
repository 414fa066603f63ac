"""`aiokwire spark demo`: hourly delays by airline, with a pipeline killed in a transaction.

```
hourly_delays.toml   the pipeline, for `aiokwire spark run`
process.py           the pipeline as a process, to be killed and restarted
work.py              flights in, kill, delays out; the observations
direct.py            the delays computed without Kafka and Spark, and the comparison
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
    holds="Directory of the broker's log, the checkpoint, Spark's log and the plot.",
    kill="Kill the pipeline with SIGKILL during a transaction.",
)
def command(output: Path, kill: bool) -> None:
    """Compute a year of hourly delays by airline with Spark, exactly once.

    A producer sends every flight to the embedded broker; a declared pipeline sums up each hour of
    each airline and writes it to a topic in transactions. It is killed during a transaction, and
    restarted. The exit status is 0 if a read_committed reader finds each hour once, with the
    figures of a direct computation.
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
