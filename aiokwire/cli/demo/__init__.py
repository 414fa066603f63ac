"""`aiokwire demo`: 336,776 real flights through a broker that is killed on the way.

```
flights.py   the flights, as keys and JSON values
server.py    the broker as a process of its own, to be killed and started again
pipeline.py  one producer, two consumers, one kill; what everybody saw
report.py    the table, the plot, and the check whose result is the exit status
frame.py     what the demo of Spark needs, too
```
"""

from __future__ import annotations

from pathlib import Path

import click

from aiokwire.cli.demo.frame import demo_options
from aiokwire.cli.running import run


@click.command("demo")
@demo_options(
    "demo-output", holds="Where the broker's log and the plot go.", kill="Kill the broker halfway with SIGKILL."
)
def command(output: Path, kill: bool) -> None:
    """Stream a year of flights from New York through a broker that is killed halfway.

    A producer sends every flight, keyed by its aircraft, while two consumers add up the delays of each airline. The
    exit status is 0 when every flight arrived, in order for each aircraft.
    """

    async def demo() -> int:
        from aiokwire.cli.demo.pipeline import stream_flights
        from aiokwire.cli.demo.report import check, show

        outcome = await stream_flights(output, kill=kill)
        show(outcome, output)
        return 0 if check(outcome) else 1

    run(demo)
