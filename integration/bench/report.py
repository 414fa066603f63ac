"""Medians, ratios within one repetition, and the table."""

from __future__ import annotations

import platform
import statistics
import sys
from typing import Any

from rich.console import Console
from rich.table import Table

from integration.bench.meter import Figures
from integration.bench.plan import SUBJECT, Row

Runs = dict[str, list[Figures | None]]  # by client, one entry per repetition; None: it failed


def summary(runs: Runs, value_size: int) -> dict[str, dict[str, Any]]:
    """Return each client's medians and extremes, and its median ratios to the peers.

    A ratio compares runs of the same repetition.
    """
    results: dict[str, dict[str, Any]] = {}
    for client, repetitions in runs.items():
        done = [figures for figures in repetitions if figures is not None]
        if not done:
            results[client] = {"failed": len(repetitions)}
            continue
        rates = [_rate(figures) for figures in done]
        entry: dict[str, Any] = {
            "messages_per_second": statistics.median(rates),
            "megabytes_per_second": statistics.median(rates) * value_size / 1e6,
            "slowest": min(rates),
            "fastest": max(rates),
            "cpu_seconds_per_million": statistics.median(_cpu(figures) for figures in done),
            "least_cpu": min(_cpu(figures) for figures in done),
            "peak_mib": max(figures.peak_mib for figures in done),
            "failed": len(repetitions) - len(done),
            "ratios": {
                peer: ratio
                for peer, theirs in runs.items()
                if peer != client and (ratio := _ratio(repetitions, theirs)) is not None
            },
        }
        for name in done[0].latencies:
            entry[f"{name}_ms"] = statistics.median(figures.latencies[name] for figures in done)
        results[client] = entry
    return results


def _ratio(ours: list[Figures | None], theirs: list[Figures | None]) -> dict[str, float] | None:
    pairs = [(mine, other) for mine, other in zip(ours, theirs, strict=False) if mine is not None and other is not None]
    if not pairs:
        return None
    return {
        "rate": statistics.median(_rate(mine) / _rate(other) for mine, other in pairs),
        "cpu": statistics.median(_cpu(mine) / _cpu(other) for mine, other in pairs),
    }


def _rate(figures: Figures) -> float:
    return figures.count / figures.seconds


def _cpu(figures: Figures) -> float:
    return max(figures.cpu, 1e-6) / figures.count * 1e6


def machine() -> dict[str, str]:
    """Describe this machine."""
    return {"python": sys.version.split()[0], "system": platform.platform(), "processor": platform.machine()}


def show(console: Console, row: Row, results: dict[str, dict[str, Any]], against: str) -> None:
    """Print a row of the plan as a table with ratios to `against`.

    Below it, print aiokwire's ratios to the other peers.
    """
    table = Table(title=row.title, title_justify="left")
    table.add_column("client")
    latency = row.task == "send"
    names = ["messages/s", "slowest to fastest", f"x {against}", "CPU s/million", f"of {against}'s", "peak MiB"]
    for name in [*names, "p50 / p99 ms" if latency else "MB/s"]:
        table.add_column(name, justify="right")
    for client, entry in results.items():
        if "messages_per_second" not in entry:
            table.add_row(client, "failed")
            continue
        ratio = {"rate": 1.0, "cpu": 1.0} if client == against else entry["ratios"].get(against)
        cells = [
            client,
            f"{entry['messages_per_second']:,.0f}",
            f"{entry['slowest']:,.0f} to {entry['fastest']:,.0f}",
            f"{ratio['rate']:.2f}" if ratio else "",
            f"{entry['cpu_seconds_per_million']:.3f}",
            _share(ratio["cpu"]) if ratio else "",
            f"{entry['peak_mib']:.0f}",
        ]
        if latency:
            cells.append(f"{entry['p50_ms']:.2f} / {entry['p99_ms']:.2f}" if "p50_ms" in entry else "")
        else:
            cells.append(f"{entry['megabytes_per_second']:,.0f}")
        table.add_row(*cells)
    console.print(table)
    for peer, ratio in results.get(SUBJECT, {}).get("ratios", {}).items():
        if peer != against:
            text = f"{SUBJECT}: {ratio['rate']:.2f} x {peer}, {_share(ratio['cpu'])} of its CPU"
            console.print(text, markup=False, highlight=False)


def show_overhead(console: Console, row: Row, results: dict[str, dict[str, Any]]) -> None:
    """Print what each security protocol costs each client above plaintext."""
    for client, entry in results.items():
        plain, _, protocol = client.partition("+")
        before = results.get(plain, {})
        if not protocol or "least_cpu" not in entry or "least_cpu" not in before:
            continue
        median, best = (
            (entry[name] - before[name]) * 1000 / row.value_size for name in ("cpu_seconds_per_million", "least_cpu")
        )
        rate = entry["messages_per_second"] / before["messages_per_second"]
        text = f"{client}: {median:+.2f} CPU s/GB above plaintext (best runs {best:+.2f}), {rate:.2f} of its rate"
        console.print(text, markup=False, highlight=False)


def _share(ratio: float) -> str:
    return f"1/{1 / ratio:.1f}" if ratio < 1 else f"{ratio:.1f}"
