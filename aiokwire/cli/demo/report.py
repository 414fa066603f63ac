"""The demo's report: a table, a plot, the throughput, and the check."""

from __future__ import annotations

from pathlib import Path

from aiokwire.cli.demo.frame import Finding, plot_counts, print_check, shade, two_plots
from aiokwire.cli.demo.pipeline import Outcome
from aiokwire.cli.output import print_report


def show_delays(outcome: Outcome) -> None:
    """Print the table; at 80 columns each airline is one line."""
    rows = []
    for carrier, seen in sorted(outcome.delays.items(), key=lambda item: -item[1].flights):
        flown = seen.flights - seen.cancelled
        rows.append(
            [
                outcome.flights.airlines.get(carrier, carrier),
                seen.flights,
                seen.cancelled,
                seen.minutes / flown if flown else 0.0,
                100.0 * seen.delayed / flown if flown else 0.0,
            ]
        )
    columns = ["airline", "flights", "no arrival", "mean min", "> 15 min, %"]
    print_report("Arrival delays, flights from New York City in 2013", columns, rows)


def show(outcome: Outcome, output: Path) -> None:
    """Print the table and the figures, and write the plot to `output`."""
    show_delays(outcome)
    plot = draw(outcome, output / "flights.png")
    total = len(outcome.flights.values)
    print(
        f"produced and acknowledged {total:,} flights in {outcome.produce_seconds:.2f} s, "
        f"{total / outcome.produce_seconds:,.0f}/s"
        if outcome.produce_seconds
        else "not every flight was acknowledged"
    )
    print(f"end to end in {outcome.total_seconds:.2f} s, {len(outcome.arrived) / outcome.total_seconds:,.0f}/s")
    shares = ", ".join(f"consumer {number}: {count:,}" for number, count in sorted(outcome.consumed_by.items()))
    print(f"records read by {shares}")
    if outcome.killed_at is not None and outcome.back_at is not None:
        print(
            f"broker killed after {outcome.killed_at:.2f} s ({outcome.acknowledged_at_kill:,} flights acknowledged), "
            f"serving again {outcome.back_at - outcome.killed_at:.2f} s later"
        )
    print(f"plot: {plot}")


def check(outcome: Outcome) -> bool:
    """Print the check line by line; return whether all of it passed."""
    total = len(outcome.flights.values)
    lost = outcome.acknowledged - outcome.arrived
    findings = [
        Finding("finished in time", outcome.complete),
        Finding(
            "every flight acknowledged",
            len(outcome.acknowledged) == total,
            f"{len(outcome.acknowledged):,} of {total:,}",
        ),
        Finding("nothing acknowledged lost", not lost, f"{len(lost):,} lost"),
        Finding("every flight arrived", len(outcome.arrived) == total, f"{len(outcome.arrived):,} of {total:,}"),
        Finding(
            "in order for each aircraft",
            not outcome.out_of_order,
            outcome.out_of_order[0] if outcome.out_of_order else "none out of order",
        ),
    ]
    return print_check("check", findings, f"duplicates: {outcome.duplicates:,}")


def draw(outcome: Outcome, path: Path) -> Path:
    """Plot acknowledged and consumed flights over time, and the mean delay of each airline."""
    means = sorted(
        (seen.minutes / max(1, seen.flights - seen.cancelled), outcome.flights.airlines.get(carrier, carrier))
        for carrier, seen in outcome.delays.items()
    )
    with two_plots(path, (13, 5)) as (left, right):
        names = ("acknowledged to the producer", "read by the consumers")
        plot_counts(left, outcome.samples, names, title="Flights through the broker", unit="flights")
        if outcome.killed_at is not None:
            shade(left, outcome.killed_at, outcome.back_at or outcome.samples[-1][0], "broker down (SIGKILL)")
        left.legend()
        right.barh([name for _, name in means], [mean for mean, _ in means], color="tab:blue")
        right.axvline(0, color="black", linewidth=0.8)
        right.set(xlabel="mean arrival delay, minutes", title="Delay by airline")
    return path
