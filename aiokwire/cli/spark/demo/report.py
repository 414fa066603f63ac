"""The demo's report: a table, a plot, and the check."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from aiokwire.cli.demo.frame import Finding, plot_counts, print_check, shade, two_plots
from aiokwire.cli.output import print_report
from aiokwire.cli.spark.demo.direct import Hour
from aiokwire.cli.spark.demo.work import Outcome

NEW_YORK = -5  # hours from UTC, without summer time: a plot by hour of day needs no more


def show(outcome: Outcome, output: Path) -> None:
    """Print the table and the figures, and write the plot to `output`."""
    rows = []
    for carrier, hours in sorted(by_airline(outcome).items(), key=lambda item: -sum(hour.flights for hour in item[1])):
        flights, arrived = sum(hour.flights for hour in hours), sum(hour.arrived for hour in hours)
        minutes = sum(hour.minutes for hour in hours)
        worst = max(hour.minutes / hour.arrived for hour in hours if hour.arrived)
        name = outcome.airlines.get(carrier, carrier)
        rows.append([name, len(hours), flights, minutes / max(1, arrived), worst])
    columns = ["airline", "hours", "flights", "mean delay, min", "worst hour, min"]
    print_report("Arrival delays by hour and airline, flights from New York City in 2013", columns, rows)
    plot = draw(outcome, output / "delays.png")
    last = outcome.summary
    starts = "one start" if outcome.killed_at is None else "two starts"
    print(
        f"{outcome.flights:,} flights to {len(outcome.hours):,} hours in {outcome.seconds:.1f} s, {starts} of Spark "
        f"included; the last run wrote {last['rows_written']['delays']:,} in {last['batches']['delays']} microbatches"
    )
    if outcome.killed_at is not None and outcome.back_at is not None:
        print(f"from the kill to the next commit: {outcome.back_at - outcome.killed_at:.1f} s")
    print(f"plot: {plot}")


def by_airline(outcome: Outcome) -> dict[str, list[Hour]]:
    """Group the hours that were read back by carrier."""
    found: dict[str, list[Hour]] = defaultdict(list)
    for (_, carrier), hour in outcome.hours:
        found[carrier].append(hour)
    return found


def check(outcome: Outcome) -> bool:
    """Print the check line by line; return whether all of it passed."""
    compared = outcome.comparison
    torn = outcome.in_log - len(outcome.hours)
    findings = [
        Finding(
            "hours were compared",
            compared.expected > 0,
            f"{compared.expected:,}; {compared.open:,} more are still open",
        ),
        Finding("none is missing", not compared.missing, f"{len(compared.missing):,}"),
        Finding("none is duplicated", not compared.doubled, f"{len(compared.doubled):,}"),
        Finding("each as computed directly", not compared.different, f"{len(compared.different):,} differ"),
        Finding("none that is still open", not compared.unexpected, f"{len(compared.unexpected):,}"),
    ]
    if outcome.left_open:  # unless the kill came just between two transactions
        detail = f"{outcome.left_open:,} records left open by the kill, {torn:,} in the log that read_committed skips"
        findings.append(Finding("the open transaction was aborted", torn > 0, detail))
    return print_check("check, with a read_committed reader", findings)


def draw(outcome: Outcome, path: Path) -> Path:
    """Write the plot: the topic over time, and the mean delay by hour of day and airline."""
    carriers, means = by_hour_of_day(outcome)
    with two_plots(path, (14, 5.5)) as (left, right):
        names = ("end of the log", "read by read_committed")
        title, unit = "The topic of the hourly delays", "records of the topic, all partitions"
        plot_counts(left, outcome.samples, names, title=title, unit=unit)
        if outcome.killed_at is not None:
            until = outcome.back_at or outcome.seconds
            shade(left, outcome.killed_at, until, "SIGKILL, until the next commit")
        left.legend(loc="upper left")
        image = right.imshow(means, aspect="auto", cmap="RdYlGn_r", vmin=-20, vmax=40)
        right.set_yticks(range(len(carriers)), [outcome.airlines.get(carrier, carrier) for carrier in carriers])
        right.set(xlabel="hour of departure, New York", title="Mean arrival delay by hour and airline, minutes")
        right.figure.colorbar(image, ax=right)
    return path


def by_hour_of_day(outcome: Outcome) -> tuple[list[str], list[list[float]]]:
    """Return carriers by their flights, and their mean delays by hour; NaN without flights."""
    sums: dict[str, list[list[int]]] = defaultdict(lambda: [[0, 0] for _ in range(24)])
    flights: dict[str, int] = defaultdict(int)
    for (start, carrier), hour in outcome.hours:
        cell = sums[carrier][(start.hour + NEW_YORK) % 24]
        cell[0] += hour.minutes
        cell[1] += hour.arrived
        flights[carrier] += hour.flights
    carriers = sorted(flights, key=lambda carrier: -flights[carrier])
    return carriers, [
        [minutes / arrived if arrived else float("nan") for minutes, arrived in sums[c]] for c in carriers
    ]
