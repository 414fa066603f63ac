"""Repeat the attacks of the security review, and compare what each costs with its bar.

    python -m integration.attacks [V3 V13 ...]

Each attack on the broker has a broker process of its own and another client beside it; attacks on
clients come from a hostile broker process. Prints a table; the exit status is 1 if a bar is broken.
"""

from __future__ import annotations

import argparse
import gc

import uvloop
from rich.console import Console
from rich.table import Table

from integration.attacks import on_broker, on_client
from integration.attacks.figures import Figure


def measure(name: str) -> list[Figure]:
    """Run one attack on an event loop of its own."""
    gc.collect()
    runner = on_broker.run if name in on_broker.ATTACKS else on_client.run
    return uvloop.run(runner(name))


def main() -> None:
    """Run the attacks that the command line names; without names all."""
    known = [*on_broker.ATTACKS, *on_client.ATTACKS]
    parser = argparse.ArgumentParser(prog="python -m integration.attacks", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(known)}; default: all")
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in known]
    if unknown:
        parser.error(f"no attack {', '.join(unknown)}; there are {', '.join(known)}")
    console = Console(width=110)
    table = Table("attack", "figures", "bars", "")
    broken = 0
    for name in given.names or known:
        figures = measure(name)
        failed = [figure for figure in figures if not figure.is_held]
        broken += bool(failed)
        bars = ", ".join(figure.bar_text for figure in figures)
        verdict = "FAILED: " + ", ".join(figure.what for figure in failed) if failed else "ok"
        table.add_row(name, ", ".join(figure.text for figure in figures), bars, verdict)
        console.print(f"{name}: {', '.join(figure.text for figure in figures)}: {verdict}")
    console.print(table)
    raise SystemExit(broken > 0)


if __name__ == "__main__":
    main()
