"""An audit's report as tables for a terminal. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from aiokwire.spark.audit.report import AuditReport, all_codecs, key_text, lag_by_group

# The rows shown of long tables; the JSON and HTML reports have more.
ROWS: Final = 10


class Table(NamedTuple):
    """A table of text."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[object]]


def audit_tables(report: AuditReport) -> Iterator[Table]:
    """Yield the tables of a report, the partitions first and the findings last."""
    rows = []
    for each in report.partitions:
        tally = each.tally
        rows.append([
            each.name, tally.start, tally.end, tally.records.count, tally.aborted, tally.control,
            tally.compacted.offsets, tally.missing.offsets, tally.batches.bytes.total, tally.batches.bytes.count,
        ])  # fmt: skip
    heads = ["partition", "from", "to", "records", "aborted", "control", "compacted", "between", "bytes", "batches"]
    yield Table(f"{report.records:,} records in {report.seconds:.1f} s", heads, rows)
    codecs = all_codecs(report.partitions).items()
    yield from _some("Compression", ["", "batches", "bytes"], [[name, *counts] for name, counts in codecs])
    keys = report.keys
    note = "" if keys.is_exact else f" (may be {keys.error:,} more)"
    yield from _some("Most frequent keys", ["key", f"records{note}"], [[key_text(k), n] for k, n in keys.top(ROWS)])
    if report.duplicates is not None:
        repeated = [[each.topic, each.times, str(each)] for each in report.duplicates.shown]
        yield from _some(f"Duplicates by {report.duplicates.by}", ["topic", "times", "where"], repeated)
    lags = lag_by_group(report.lags).items()
    yield from _some("Consumer groups", ["group", "offsets behind"], [list(item) for item in lags])
    found = [
        ["fails" if each in report.wrong else "note", each.finding.value, each.where, each.text]
        for each in report.found
    ]
    yield from _some("Found", ["", "what", "where", ""], found, most=4 * ROWS)


def _some(title: str, heads: Sequence[str], rows: Sequence[Sequence[object]], most: int = ROWS) -> Iterator[Table]:
    """Yield the first rows of a table, unless it is empty."""
    if rows:
        title += f", {most} of {len(rows):,}" if len(rows) > most else ""
        yield Table(title, heads, rows[:most])
