"""What the demo shows at its end: a table, a plot, and the check."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from aiokwire.cli.output import print_table
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
    print_table("Arrival delays by hour and airline, flights from New York City in 2013", columns, rows)
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
    """The hours that were read back."""
    found: dict[str, list[Hour]] = defaultdict(list)
    for (_, carrier), hour in outcome.hours:
        found[carrier].append(hour)
    return found


def check(outcome: Outcome) -> bool:
    """Print the check line by line; True when all of it holds."""
    compared = outcome.comparison
    torn = outcome.in_log - len(outcome.hours)
    tests = [
        ("hours were compared", compared.expected > 0, f"{compared.expected:,}; {compared.open:,} more are still open"),
        ("none is missing", not compared.missing, f"{len(compared.missing):,}"),
        ("none is there twice", not compared.doubled, f"{len(compared.doubled):,}"),
        ("each as computed directly", not compared.different, f"{len(compared.different):,} differ"),
        ("none that is still open", not compared.unexpected, f"{len(compared.unexpected):,}"),
    ]
    if outcome.left_open:  # unless the kill came just between two transactions
        detail = f"{outcome.left_open:,} records left open by the kill, {torn:,} in the log that nobody reads"
        tests.append(("the open transaction was aborted", torn > 0, detail))
    print("check, with a read_committed reader:")
    for name, held, detail in tests:
        print(f"  {'ok  ' if held else 'FAIL'} {name} ({detail})")
    good = all(held for _, held, _ in tests)
    print("check passed" if good else "check FAILED")
    return good


def draw(outcome: Outcome, path: Path) -> Path:
    """Write the plot: the topic over time, and the mean delay by hour of day and airline."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(14, 5.5), layout="constrained")
    seconds = [at for at, _, _ in outcome.samples]
    left.step(seconds, [log for _, log, _ in outcome.samples], where="post", label="end of the log")
    left.step(seconds, [done for _, _, done in outcome.samples], where="post", label="read by read_committed")
    if outcome.killed_at is not None:
        left.axvspan(
            outcome.killed_at,
            outcome.back_at or outcome.seconds,
            color="tab:red",
            alpha=0.2,
            label="SIGKILL, until the next commit",
        )
    left.set(xlabel="seconds", ylabel="records of the topic, all partitions", title="The topic of the hourly delays")
    left.yaxis.set_major_formatter("{x:,.0f}")
    left.set_ylim(bottom=0)
    left.legend(loc="upper left")
    carriers, means = by_hour_of_day(outcome)
    image = right.imshow(means, aspect="auto", cmap="RdYlGn_r", vmin=-20, vmax=40)
    right.set_yticks(range(len(carriers)), [outcome.airlines.get(carrier, carrier) for carrier in carriers])
    right.set(xlabel="hour of departure, New York", title="Mean arrival delay by hour and airline, minutes")
    figure.colorbar(image, ax=right)
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


def by_hour_of_day(outcome: Outcome) -> tuple[list[str], list[list[float]]]:
    """Carriers, the one with most flights first, and for each the mean delay of 24 hours; NaN where it does not fly."""
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
