"""Medians, ratios to the baseline within one repetition, and the table."""

from __future__ import annotations

import platform
import statistics
import sys
from typing import Any

from rich.console import Console
from rich.table import Table

from integration.bench.meter import Figures
from integration.bench.plan import BASELINE, Row

Runs = dict[str, list[Figures | None]]  # by client, one entry a repetition; None: it failed


def summary(runs: Runs) -> dict[str, dict[str, Any]]:
    """Of every client: medians, extremes, and the median of its ratios to the baseline of the same repetition."""
    said: dict[str, dict[str, Any]] = {}
    for client, repetitions in runs.items():
        done = [figures for figures in repetitions if figures is not None]
        if not done:
            said[client] = {"failed": len(repetitions)}
            continue
        rates = [figures.count / figures.seconds for figures in done]
        entry: dict[str, Any] = {
            "messages_per_second": statistics.median(rates),
            "slowest": min(rates),
            "fastest": max(rates),
            "cpu_seconds_per_million": statistics.median(_cpu(figures) for figures in done),
            "peak_mib": max(figures.peak_mib for figures in done),
            "failed": len(repetitions) - len(done),
        }
        for name in done[0].latencies:
            entry[f"{name}_ms"] = statistics.median(figures.latencies[name] for figures in done)
        pairs = [
            (ours, theirs)
            for ours, theirs in zip(repetitions, runs.get(BASELINE, []), strict=False)
            if ours is not None and theirs is not None
        ]
        if pairs:
            rate = [(ours.count / ours.seconds) / (theirs.count / theirs.seconds) for ours, theirs in pairs]
            cpu = [_cpu(ours) / _cpu(theirs) for ours, theirs in pairs]
            entry["rate_ratio"] = statistics.median(rate)
            entry["cpu_ratio"] = statistics.median(cpu)
        said[client] = entry
    return said


def _cpu(figures: Figures) -> float:
    return max(figures.cpu, 1e-6) / figures.count * 1e6


def machine() -> dict[str, str]:
    """Where it ran."""
    return {"python": sys.version.split()[0], "system": platform.platform(), "processor": platform.machine()}


def show(console: Console, row: Row, said: dict[str, dict[str, Any]]) -> None:
    """Prints one row of the plan as a table."""
    table = Table(title=row.name, title_justify="left")
    table.add_column("client")
    for name in ("messages/s", "slowest to fastest", f"x {BASELINE}", "CPU s/million", f"of {BASELINE}'s", "peak MiB"):
        table.add_column(name, justify="right")
    latency = row.task == "send"
    if latency:
        table.add_column("p50 / p99 ms", justify="right")
    for client, entry in said.items():
        if "messages_per_second" not in entry:
            table.add_row(client, "failed")
            continue
        cells = [
            client,
            f"{entry['messages_per_second']:,.0f}",
            f"{entry['slowest']:,.0f} to {entry['fastest']:,.0f}",
            f"{entry['rate_ratio']:.2f}" if "rate_ratio" in entry else "",
            f"{entry['cpu_seconds_per_million']:.3f}",
            f"1/{1 / entry['cpu_ratio']:.1f}" if "cpu_ratio" in entry else "",
            f"{entry['peak_mib']:.0f}",
        ]
        if latency:
            cells.append(f"{entry['p50_ms']:.2f} / {entry['p99_ms']:.2f}" if "p50_ms" in entry else "")
        table.add_row(*cells)
    console.print(table)
