"""Medians of a case's repetitions, and the tables."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from integration.bench.workers.kills import Outcome
from integration.bench.workers.meter import Figures
from integration.bench.workers.plan import BARE, SUBJECT, Case

Runs = Mapping[str, Sequence[Figures | None]]  # by client, one entry per repetition; None: it failed


@dataclass(frozen=True, slots=True)
class Entry:
    """A client's medians in one case; ratios are medians of those within a repetition."""

    rate: float
    slowest: float
    fastest: float
    cpu_per_million: float
    peak_mib: float
    ratios: dict[str, float]  # of the subject's rate to this client's rate; empty without the subject
    failed: int

    @property
    def times(self) -> float:
        """How many times this client's rate the subject has; NaN if unknown."""
        return self.ratios.get(SUBJECT, math.nan)


def summary(runs: Runs) -> dict[str, Entry]:
    """Return the medians of each client that did not fail in every repetition."""
    found = {}
    for client, repetitions in runs.items():
        done = [figures for figures in repetitions if figures is not None]
        if not done:
            continue
        rates = [_rate(figures) for figures in done]
        ratio = _ratio(runs.get(SUBJECT, ()), repetitions)
        found[client] = Entry(
            rate=statistics.median(rates),
            slowest=min(rates),
            fastest=max(rates),
            cpu_per_million=statistics.median(each.cpu / max(1, each.count) * 1e6 for each in done),
            peak_mib=max(each.peak_mib for each in done),
            ratios={} if ratio is None else {SUBJECT: ratio},
            failed=len(repetitions) - len(done),
        )
    return found


def _rate(figures: Figures) -> float:
    return figures.count / figures.seconds


def _ratio(ours: Sequence[Figures | None], theirs: Sequence[Figures | None]) -> float | None:
    pairs = [(mine, other) for mine, other in zip(ours, theirs, strict=False) if mine and other and other.count]
    return statistics.median(_rate(mine) / _rate(other) for mine, other in pairs) if pairs else None


def show(console: Console, case: Case, entries: Mapping[str, Entry]) -> None:
    """Print a case as a table."""
    table = Table(title=case.title, title_justify="left")
    table.add_column("client")
    for name in ("records/s", "slowest to fastest", f"{SUBJECT} / it", "% of ideal", "CPU s/million", "peak MiB"):
        table.add_column(name, justify="right")
    for client, entry in entries.items():
        table.add_row(
            client + (f" ({entry.failed} failed)" if entry.failed else ""),
            f"{entry.rate:,.0f}",
            f"{entry.slowest:,.0f} to {entry.fastest:,.0f}",
            "" if math.isnan(entry.times) or client == SUBJECT else f"{entry.times:.2f}",
            "" if math.isinf(case.ideal) else f"{100 * entry.rate / case.ideal:.0f}",
            f"{entry.cpu_per_million:.2f}",
            f"{entry.peak_mib:.0f}",
        )
    console.print(table)
    if BARE in entries and SUBJECT in entries:
        share = 100 * entries[SUBJECT].rate / entries[BARE].rate
        console.print(f"{SUBJECT}: {share:.0f}% of a bare loop of asyncio", markup=False, highlight=False)


def show_kills(console: Console, outcomes: Mapping[str, Sequence[Outcome]]) -> None:
    """Print what each client handled twice, or never, after a kill."""
    table = Table(title="after SIGKILL: concurrency 16, handlers of 10 ms, one in 1,000 of 2 s", title_justify="left")
    table.add_column("client")
    for name in ("finished before", "finished again", "never finished"):
        table.add_column(name, justify="right")
    for client, several in outcomes.items():
        cells = zip(*((each.finished, each.repeated, each.lost) for each in several), strict=True)
        table.add_row(client, *(", ".join(f"{number:,}" for number in each) for each in cells))
    console.print(table)
