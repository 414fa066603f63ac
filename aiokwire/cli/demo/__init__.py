"""`aiokwire demo`: 336,776 real flights through a broker that is killed halfway.

```
flights.py   the flights, as keys and JSON values
server.py    the broker as a process, to be killed and restarted
pipeline.py  one producer, two consumers, one kill; the observations
report.py    the table, the plot, and the check whose result is the exit status
frame.py     shared with the demo of Spark
```
"""

from __future__ import annotations

from pathlib import Path

import click

from aiokwire.cli.demo.frame import demo_options
from aiokwire.cli.running import run


@click.command("demo")
@demo_options(
    "demo-output", holds="Directory of the broker's log and the plot.", kill="Kill the broker halfway with SIGKILL."
)
def command(output: Path, kill: bool) -> None:
    """Stream a year of flights from New York through a broker that is killed halfway.

    A producer sends every flight, keyed by its aircraft, while two consumers sum up the delays of
    each airline. The exit status is 0 if every flight arrived, in order for each aircraft.
    """

    async def demo() -> int:
        from aiokwire.cli.demo.pipeline import stream_flights
        from aiokwire.cli.demo.report import check, show

        outcome = await stream_flights(output, kill=kill)
        show(outcome, output)
        return 0 if check(outcome) else 1

    run(demo)
