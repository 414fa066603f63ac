"""An audit's plots, each as an SVG document. Needs matplotlib; without it a report has no plots.

Text is drawn as outlines, so that names and keys cannot inject markup.
"""

from __future__ import annotations

import datetime
import importlib.util
import io
from collections.abc import Callable, Sequence
from typing import Any, Final

from aiokwire.spark.audit.report import (
    AuditReport,
    PartitionReport,
    all_sizes,
    all_times,
    key_text,
    lag_by_group,
)
from aiokwire.spark.audit.sketches import Sizes

# The most bars that remain distinguishable.
MOST_BARS: Final = 40
_KEYS: Final = 15
_LABEL: Final = 32

_PARTS: Final[Sequence[tuple[str, str, Callable[[PartitionReport], int]]]] = (
    ("records", "#4c78a8", lambda each: each.tally.records.count),
    ("aborted", "#f58518", lambda each: each.tally.aborted),
    ("control", "#b279a2", lambda each: each.tally.control),
    ("compacted", "#9d9da1", lambda each: each.tally.compacted.offsets),
    ("between batches", "#e45756", lambda each: each.tally.missing.offsets),
    ("deleted meanwhile", "#79706e", lambda each: each.tally.deleted.offsets),
)


def have_plots() -> bool:
    """Whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def draw_all(report: AuditReport) -> list[tuple[str, bytes]]:
    """Draw each plot that has data; return titles and documents."""
    if not any(each.tally.end > each.tally.start for each in report.partitions):
        return []
    plots = [
        ("Offsets by content and partition", _offsets),
        ("Bytes by partition", _bytes),
        ("Records over time", _times),
        ("Records in a batch", lambda axes, it: _sizes(axes, [x.tally.batches.records for x in it.partitions])),
        ("Bytes of a batch", lambda axes, it: _sizes(axes, [x.tally.batches.bytes for x in it.partitions])),
        ("Bytes of key and value", lambda axes, it: _sizes(axes, [x.tally.records.sizes for x in it.partitions])),
    ]
    if report.keys.counts:
        plots.append(("Most frequent keys", _keys))
    if report.lags:
        plots.append(("Lag by group", _lags))
    return [(title, _draw(report, draw)) for title, draw in plots]


def label(text: str) -> str:
    """Return a name for matplotlib: short, in ASCII, and not parsed as a formula."""
    plain = text.encode("ascii", "backslashreplace").decode()
    plain = plain if len(plain) <= _LABEL else plain[: _LABEL - 3] + "..."
    return plain.replace("$", r"\$")


def _draw(report: AuditReport, draw: Callable[[Any, AuditReport], None]) -> bytes:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    # Without pyplot: no window system, no global state. The salt makes the documents of equal reports equal.
    with mpl.rc_context({"svg.hashsalt": "aiokwire", "svg.fonttype": "path", "font.size": 9}):
        figure = Figure(figsize=(6.4, 3.4), layout="constrained")
        axes = figure.add_subplot()
        axes.spines[["top", "right"]].set_visible(False)
        draw(axes, report)
        out = io.BytesIO()
        figure.savefig(out, format="svg", metadata={"Date": None})
        return out.getvalue()


def _largest(report: AuditReport) -> list[PartitionReport]:
    chosen = sorted(report.partitions, key=lambda each: each.tally.start - each.tally.end)[:MOST_BARS]
    return sorted(chosen, key=lambda each: each.tally.tp, reverse=True)


def _offsets(axes: Any, report: AuditReport) -> None:
    shown = _largest(report)
    names = [label(each.name) for each in shown]
    left = [0] * len(shown)
    for name, colour, count in _PARTS:
        widths = [count(each) for each in shown]
        if any(widths):
            axes.barh(range(len(shown)), widths, left=left, color=colour, label=name)
        left = [before + width for before, width in zip(left, widths, strict=True)]
    axes.set_yticks(range(len(shown)), names)
    axes.set_ylim(_room(len(shown)))
    axes.set_xlabel("offsets")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=len(_PARTS), fontsize="x-small", frameon=False)


def _bytes(axes: Any, report: AuditReport) -> None:
    shown = _largest(report)
    _bars(axes, [(each.name, each.tally.batches.bytes.total / 2**20) for each in shown], "MiB in the log")


def _room(bars: int) -> tuple[float, float]:
    """Return limits of the vertical axis, so that a single bar does not fill it."""
    return (bars - max(bars, 4)) / 2 - 0.6, (bars + max(bars, 4)) / 2 - 0.4


def _bars(axes: Any, rows: Sequence[tuple[str, float]], what: str) -> None:
    axes.barh(range(len(rows)), [width for _, width in rows], color="#4c78a8")
    axes.set_yticks(range(len(rows)), [label(name) for name, _ in rows])
    axes.set_ylim(_room(len(rows)))
    axes.set_xlabel(what)
    axes.xaxis.set_major_formatter("{x:,.6g}")


def _times(axes: Any, report: AuditReport) -> None:
    from matplotlib import dates

    buckets = all_times(report.partitions)
    rows = list(buckets)
    if not rows:
        axes.text(0.5, 0.5, "no record has a timestamp", ha="center", transform=axes.transAxes)
        return
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    known = [(start, count) for start, count in rows if start < _LAST_YEAR]
    times = [epoch + datetime.timedelta(milliseconds=start) for start, _ in known]
    width = datetime.timedelta(milliseconds=buckets.width)
    axes.bar(times, [count for _, count in known], width=width, align="edge", color="#4c78a8")
    axes.set_ylabel("records")
    axes.set_xlabel("time, UTC")
    formatter: Any = dates.ConciseDateFormatter  # it has no annotations
    axes.xaxis.set_major_formatter(formatter(axes.xaxis.get_major_locator()))
    _count(axes.yaxis)


# Later times, which `datetime` may not hold, are not drawn (milliseconds; the year 9000).
_LAST_YEAR: Final = 221_845_392_000_000


def _sizes(axes: Any, parts: Sequence[Sizes]) -> None:
    by_bits = all_sizes(parts).by_bits
    if not by_bits:
        axes.text(0.5, 0.5, "nothing", ha="center", transform=axes.transAxes)
        return
    bits = range(min(by_bits), max(by_bits) + 1)
    axes.bar(range(len(bits)), [by_bits.get(each, 0) for each in bits], color="#4c78a8")
    names = [_amount(1 << (each - 1)) if each else "0" for each in bits]
    axes.set_xticks(range(len(bits)), names, rotation=45 if len(bits) > 8 else 0)
    axes.set_xlabel("from ... to below the next")
    axes.set_xlim(-1, max(len(bits), 4))
    _count(axes.yaxis)


def _count(axis: Any) -> None:
    """Format an axis of integers."""
    axis.get_major_locator().set_params(integer=True)
    axis.set_major_formatter("{x:,.0f}")


def _amount(number: int) -> str:
    for unit, size in (("G", 2**30), ("M", 2**20), ("k", 2**10)):
        if number >= size:
            return f"{number // size}{unit}"
    return str(number)


def _keys(axes: Any, report: AuditReport) -> None:
    top = report.keys.top(_KEYS)[::-1]
    _bars(axes, [(key_text(key), count) for key, count in top], "records")


def _lags(axes: Any, report: AuditReport) -> None:
    groups = list(lag_by_group(report.lags).items())[:MOST_BARS][::-1]
    _bars(axes, groups, "offsets behind")
