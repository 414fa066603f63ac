"""An audit's report as one HTML document, without scripts or external resources."""

from __future__ import annotations

import base64
import datetime
import html
from collections.abc import Iterable, Sequence
from typing import Final

from aiokwire.spark.audit.plots import draw_all, have_plots
from aiokwire.spark.audit.report import (
    KEYS_SHOWN,
    PRODUCERS_SHOWN,
    AuditReport,
    Finding,
    PartitionReport,
    all_codecs,
    audit_verdict,
    key_text,
    milliseconds,
)

# The browser loads and runs nothing, whatever the document contains.
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"

_STYLE: Final = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 0 auto; max-width: 1200px; padding: 1.5rem; color: #1c1e21; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
.sub { color: #666; margin: .2rem 0 1rem; }
.tiles { display: flex; flex-wrap: wrap; gap: .8rem; }
.tile { border: 1px solid #ddd; border-radius: 8px; padding: .6rem 1rem; min-width: 8rem; }
.tile b { display: block; font-size: 1.25rem; font-variant-numeric: tabular-nums; }
.good { background: #e7f5ea; border-color: #9fd3aa; } .bad { background: #fdebea; border-color: #eba8a3; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid #e3e3e3; padding: .25rem .5rem; text-align: left; vertical-align: top; }
td { overflow-wrap: anywhere; } th { font-weight: 600; overflow-wrap: normal; vertical-align: bottom; }
td.n { text-align: right; white-space: nowrap; }
tr.bad td { background: #fdebea; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(420px, 1fr)); gap: 1rem; }
figure { margin: 0; border: 1px solid #e3e3e3; border-radius: 8px; padding: .6rem; }
figure img { width: 100%; height: auto; } figcaption { font-weight: 600; }
"""

Cell = str | int | float


def audit_as_html(report: AuditReport) -> str:
    """Render the document."""
    title = f"Audit of {', '.join(report.topics)}"
    at = datetime.datetime.fromtimestamp(report.at_ms / 1000, datetime.UTC)
    parts = [
        f"<h1>{_text(title)}</h1>",
        f'<p class="sub">{at:%Y-%m-%d %H:%M:%S} UTC, in {report.seconds:.1f} s</p>',
        _tiles(report),
        _found(report),
        _plots(report),
        _partitions(report),
        _stretches(report),
        _keys(report),
        _duplicates(report),
        _comparison(report),
        _batches(report),
        _producers(report),
        _lags(report),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_text(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(part for part in parts if part)
        + "\n</body>\n</html>\n"
    )


def _text(value: Cell) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}"
    if isinstance(value, int):
        return f"{value:,}"
    # Characters that a browser may hide or interpret, such as a change of writing direction, are escaped visibly.
    plain = "".join(each if each.isprintable() else f"\\u{{{ord(each):x}}}" for each in value)
    return html.escape(plain, quote=True)


def _table(heads: Sequence[str], rows: Iterable[Sequence[Cell]], bad: Sequence[bool] = ()) -> str:
    lines = ["<tr>" + "".join(f"<th>{_text(head)}</th>" for head in heads) + "</tr>"]
    for at, row in enumerate(rows):
        cells = "".join(
            f"<td>{_text(cell)}</td>" if isinstance(cell, str) else f'<td class="n">{_text(cell)}</td>' for cell in row
        )
        lines.append(f"<tr{_BAD if at < len(bad) and bad[at] else ''}>{cells}</tr>")
    return '<div class="wide"><table>\n' + "\n".join(lines) + "\n</table></div>"


_BAD: Final = ' class="bad"'


def _section(title: str, body: str) -> str:
    return f"<h2>{_text(title)}</h2>\n{body}"


def _tiles(report: AuditReport) -> str:
    keys = report.keys
    tiles: list[tuple[str, Cell, str]] = [
        ("result", "failed" if report.failed else "passed", "bad" if report.failed else "good"),
        ("records", report.records, ""),
        ("MiB in the log", report.bytes / 2**20, ""),
        ("partitions", len(report.partitions), ""),
        ("distinct keys", len(keys.counts) if keys.is_exact else f"more than {keys.most:,}", ""),
    ]
    if report.duplicates is not None:
        tiles.append(("duplicates", report.duplicates.extra, ""))
    return (
        '<div class="tiles">'
        + "".join(f'<div class="tile {kind}"><b>{_text(value)}</b>{_text(name)}</div>' for name, value, kind in tiles)
        + "</div>"
    )


def _found(report: AuditReport) -> str:
    asked = ", ".join(finding.value for finding in report.fail_on) or "nothing"
    note = f'<p><b>{_text(audit_verdict(report))}</b></p><p class="sub">What fails the audit: {_text(asked)}.</p>'
    if not report.found:
        return _section("Found", note)
    rows = [(each.finding.value, each.where, each.text) for each in report.found]
    return _section(
        "Found", note + _table(["what", "where", ""], rows, [each in report.wrong for each in report.found])
    )


def _plots(report: AuditReport) -> str:
    if not have_plots():
        return _section("Plots", "<p>Plots need matplotlib: pip install matplotlib</p>")
    figures = [
        f'<figure><figcaption>{_text(title)}</figcaption><img alt="{_text(title)}" '
        f'src="data:image/svg+xml;base64,{base64.b64encode(image).decode()}"></figure>'
        for title, image in draw_all(report)
    ]
    return _section("Plots", f'<div class="plots">{"".join(figures)}</div>') if figures else ""


def _partitions(report: AuditReport) -> str:
    """Render two tables: one with all columns is wider than the page."""
    bad = [any(one.where == each.name for one in report.wrong) for each in report.partitions]
    offsets = [
        "partition", "from", "to", "first", "last", "records", "aborted", "control", "compacted", "between batches",
        "unstable",
    ]  # fmt: skip
    records = ["partition", "bytes", "batches", "null keys", "null values", "steps back", "latest by"]
    return _section(
        "Partitions: offsets by content",
        _table(offsets, [_offsets(each) for each in report.partitions], bad)
        + '<p class="sub">unstable: offsets after the last stable offset, which wait for an open transaction</p>',
    ) + _section("Partitions: records", _table(records, [_records(each) for each in report.partitions], bad))


def _offsets(each: PartitionReport) -> list[Cell]:
    tally = each.tally
    edges: list[Cell] = [tally.records.first, tally.records.last] if tally.records.count else ["-", "-"]
    return [
        each.name, tally.start, tally.end, *edges, tally.records.count, tally.aborted, tally.control,
        tally.compacted.offsets, tally.missing.offsets, each.latest - each.stable,
    ]  # fmt: skip


def _records(each: PartitionReport) -> list[Cell]:
    records, size = each.tally.records, each.tally.batches.bytes
    times = records.times
    return [
        each.name, size.total, size.count, records.null_keys, records.null_values, times.steps_back,
        milliseconds(times.latest_by),
    ]  # fmt: skip


def _stretches(report: AuditReport) -> str:
    rows: list[Sequence[Cell]] = []
    for each in report.partitions:
        tally = each.tally
        between = "compacted, or never written" if each.is_compacted else "missing"
        kinds = ((between, tally.missing), ("compacted", tally.compacted), ("deleted", tally.deleted))
        for kind, stretches in kinds:
            rows += [(each.name, kind, begin, end - 1, end - begin) for begin, end in stretches.shown]
            if stretches.count > len(stretches.shown):
                rows.append((each.name, kind, f"and {stretches.count - len(stretches.shown):,} more stretches", "", ""))
    if not rows:
        return ""
    return _section("Offsets without a record", _table(["partition", "why", "first", "last", "offsets"], rows))


def _keys(report: AuditReport) -> str:
    keys = report.keys
    if not keys.counts:
        return ""
    rows = [(key_text(key), count, 100 * count / keys.records) for key, count in keys.top(KEYS_SHOWN)]
    note = "" if keys.is_exact else f'<p class="sub">Each count may be too low by up to {keys.error:,}.</p>'
    return _section("Most frequent keys", note + _table(["key", "records", "% of those with a key"], rows))


def _duplicates(report: AuditReport) -> str:
    found = report.duplicates
    if found is None:
        return ""
    note = f"<p>{found.extra:,} of {found.records:,} records repeat another by {_text(found.by)}.</p>"
    rows = [(each.topic, each.times, *each.first, *each.last) for each in found.shown]
    heads = ["topic", "times", "first in", "at", "last in", "at"]
    return _section("Duplicates", note + (_table(heads, rows) if rows else ""))


def _comparison(report: AuditReport) -> str:
    found = report.comparison
    if found is None:
        return ""
    note = f"<p>{found.records:,} records of {found.files:,} files compared with {_text(found.path)}.</p>"
    rows = [(each.topic, each.partition, each.kind, each.first, each.last, each.count) for each in found.differences]
    heads = ["topic", "partition", "difference", "first offset", "last offset", "records"]
    return _section("Against the archive", note + (_table(heads, rows) if rows else "<p>They are the same.</p>"))


def _batches(report: AuditReport) -> str:
    total = max(1, report.bytes)
    rows = [
        (name, batches, size, size / batches, 100 * size / total)
        for name, (batches, size) in all_codecs(report.partitions).items()
    ]
    formats: dict[int, int] = {}
    for each in report.partitions:
        for magic, count in each.tally.batches.by_format.items():
            formats[magic] = formats.get(magic, 0) + count
    note = ", ".join(f"{count:,} of format {magic}" for magic, count in sorted(formats.items()))
    heads = ["compression", "batches", "bytes", "bytes in a batch", "% of the bytes"]
    return _section("Batches", f"<p>{_text(note or 'none')}</p>" + _table(heads, rows)) if rows else ""


def _producers(report: AuditReport) -> str:
    rows: list[Sequence[Cell]] = []
    more = False
    for each in report.partitions:
        producers = each.tally.batches.producers
        more = more or producers.more or len(producers.by_id) > PRODUCERS_SHOWN
        for producer_id, seen in sorted(producers.by_id.items())[:PRODUCERS_SHOWN]:
            epochs = str(seen.low_epoch)
            if seen.high_epoch > seen.low_epoch:
                epochs += f" to {seen.high_epoch}"
            rows.append(
                (each.name, str(producer_id), epochs, "yes" if seen.transactional else "no", seen.first_offset,
                 seen.last_offset, seen.batches, seen.records)
            )  # fmt: skip
    if not rows:
        return ""
    heads = ["partition", "producer id", "epochs", "transactional", "first offset", "last offset", "batches", "records"]
    note = '<p class="sub">There are more.</p>' if more else ""
    return _section("Idempotent producers", note + _table(heads, rows))


def _lags(report: AuditReport) -> str:
    if not report.lags:
        return ""
    behind = [one for one in report.found if one.finding is Finding.LAG]
    rows = [(each.group, each.topic, each.partition, each.committed, each.end, each.lag) for each in report.lags]
    note = f"<p>{len(behind):,} are further behind than allowed.</p>" if behind else ""
    return _section("Consumer groups", note + _table(["group", "topic", "partition", "committed", "end", "lag"], rows))
