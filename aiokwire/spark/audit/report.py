"""The report of an audit: its values, its findings, its JSON. No I/O.

Filled by `audit`, shown by `html`, `plots`, `table` and the command.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aiokwire.errors import ConfigurationError
from aiokwire.spark.audit.against import Comparison
from aiokwire.spark.audit.duplicates import Duplicates
from aiokwire.spark.audit.sketches import Sizes, Stretches, TimeBuckets, TopKeys, sums
from aiokwire.spark.audit.tally import PartitionTally

# The keys and producers that a report names.
KEYS_SHOWN: Final = 20
PRODUCERS_SHOWN: Final = 20
# The least mean count of records in a partition for skew to be meaningful.
SKEW_FROM: Final = 1000


class Finding(enum.Enum):
    """The kinds of findings, most severe first; `fail_on` takes the values."""

    GAPS = "gaps"
    DELETED = "deleted"
    DIFFERENCES = "differences"
    DUPLICATES = "duplicates"
    DISORDER = "disorder"
    SKEW = "skew"
    ABORTED = "aborted"
    OPEN = "open"
    LAG = "lag"
    OLD_FORMATS = "old-formats"


@dataclass(frozen=True)
class Found:
    """A finding in a topic or partition."""

    finding: Finding
    topic: str
    partition: int | None
    """None: the whole topic."""
    count: int
    text: str

    @property
    def where(self) -> str:
        return self.topic if self.partition is None else f"{self.topic}[{self.partition}]"


@dataclass(frozen=True)
class PartitionReport:
    """A partition: its counts, and the offsets of its log."""

    tally: PartitionTally
    earliest: int
    stable: int
    """The last stable offset."""
    latest: int
    is_compacted: bool | None
    """By the topic's `cleanup.policy`; None if the broker does not report it."""

    @property
    def name(self) -> str:
        return str(self.tally.tp)


@dataclass(frozen=True)
class GroupLag:
    """The lag of a group in one partition."""

    group: str
    topic: str
    partition: int
    committed: int
    end: int
    lag: int


@dataclass(frozen=True)
class AuditReport:
    """The result of an audit."""

    topics: tuple[str, ...]
    at_ms: int
    """The time of the audit."""
    seconds: float
    partitions: tuple[PartitionReport, ...]
    duplicates: Duplicates | None
    """None: not searched."""
    lags: tuple[GroupLag, ...]
    comparison: Comparison | None
    found: tuple[Found, ...]
    fail_on: tuple[Finding, ...]

    @property
    def records(self) -> int:
        return sum(each.tally.records.count for each in self.partitions)

    @property
    def bytes(self) -> int:
        return sum(each.tally.batches.bytes.total for each in self.partitions)

    @property
    def wrong(self) -> tuple[Found, ...]:
        """The findings of the kinds in `fail_on`."""
        return tuple(each for each in self.found if each.finding in self.fail_on)

    @property
    def failed(self) -> bool:
        """Whether there are findings of the kinds in `fail_on`."""
        return bool(self.wrong)

    @property
    def keys(self) -> TopKeys:
        """The keys of all partitions."""
        found = TopKeys()
        for each in self.partitions:
            found = found.merge(each.tally.records.keys)
        return found


def parse_findings(names: Iterable[str]) -> tuple[Finding, ...]:
    """Parse the names of findings.

    Raises: ConfigurationError: a name is unknown.
    """
    known = {finding.value: finding for finding in Finding}
    found = []
    for name in names:
        if name not in known:
            raise ConfigurationError(f"an audit has no finding {name!r}: choose from {', '.join(known)}")
        found.append(known[name])
    return tuple(found)


# --- findings ---------------------------------------------------------------------------------------------------------


def judge(
    partitions: Sequence[PartitionReport],
    duplicates: Duplicates | None,
    lags: Sequence[GroupLag],
    comparison: Comparison | None,
    *,
    skew_limit: float,
    max_lag: int | None,
) -> tuple[Found, ...]:
    """Return all findings, the most severe kind first."""
    found: list[Found] = []
    for each in partitions:
        found += _of_partition(each)
    found += _skew(partitions, skew_limit)
    if duplicates is not None:
        found += [
            Found(Finding.DUPLICATES, topic, None, count, f"{count:,} records repeat another by {duplicates.by}")
            for topic, count in sorted(duplicates.by_topic.items())
        ]
    if max_lag is not None:
        found += [
            Found(Finding.LAG, one.topic, one.partition, one.lag, f"group {one.group} is {one.lag:,} offsets behind")
            for one in lags
            if one.lag > max_lag
        ]
    if comparison is not None:
        found += [
            Found(Finding.DIFFERENCES, one.topic, one.partition, one.count, str(one)) for one in comparison.differences
        ]
    order = list(Finding)
    return tuple(sorted(found, key=lambda one: (order.index(one.finding), one.topic, one.partition or 0)))


def _of_partition(each: PartitionReport) -> list[Found]:
    tally = each.tally
    found: list[Found] = []

    def note(finding: Finding, count: int, text: str) -> None:
        if count:
            found.append(Found(finding, tally.topic, tally.partition, count, f"{count:,} {text}"))

    if not each.is_compacted:  # in a compacted log, missing offsets were compacted
        note(Finding.GAPS, tally.missing.offsets, f"offsets are missing: {_shown(tally.missing)}")
    note(Finding.DELETED, tally.deleted.offsets, "offsets were deleted by retention during the audit")
    note(Finding.ABORTED, tally.aborted, "records of aborted transactions")
    note(Finding.OPEN, each.latest - each.stable, f"offsets wait for an open transaction, from {each.stable} on")
    times = tally.records.times
    note(
        Finding.DISORDER,
        times.steps_back,
        f"records are earlier than the one before them, by up to {milliseconds(times.latest_by)}",
    )
    old = {magic: count for magic, count in tally.batches.by_format.items() if magic < 2}
    note(Finding.OLD_FORMATS, sum(old.values()), f"batches of format {' and '.join(map(str, sorted(old)))}")
    return found


def _shown(stretches: Stretches) -> str:
    named = [str(begin) if end == begin + 1 else f"{begin} to {end - 1}" for begin, end in stretches.shown[:5]]
    return ", ".join(named) + (f", and {stretches.count - 5} more" if stretches.count > 5 else "")


def _skew(partitions: Sequence[PartitionReport], limit: float) -> list[Found]:
    found = []
    for topic in sorted({each.tally.topic for each in partitions}):
        mine = [each.tally for each in partitions if each.tally.topic == topic]
        mean = sum(tally.batches.bytes.total for tally in mine) / len(mine)
        if sum(tally.records.count for tally in mine) < SKEW_FROM * len(mine):
            continue
        for tally in mine:
            size = tally.batches.bytes.total
            if size > limit * mean:
                text = f"{size:,} bytes, {size / mean:.1f} times the mean of the partitions"
                found.append(Found(Finding.SKEW, topic, tally.partition, size, text))
    return found


def milliseconds(count: int) -> str:
    """Format a duration."""
    for unit, size in (("days", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} ms"


def audit_verdict(report: AuditReport) -> str:
    """Return the result in one line: the findings that fail the audit, and the others."""
    wrong, others = _counted(report.wrong), _counted(each for each in report.found if each not in report.wrong)
    if wrong:
        return f"FAILED: {wrong}" + (f"; findings that do not fail it: {others}" if others else "")
    return f"passed; findings that do not fail it: {others}" if others else "passed: nothing found"


def _counted(found: Iterable[Found]) -> str:
    """Count findings by kind: `2 gaps, 1 disorder`."""
    counts = collections.Counter(each.finding.value for each in found)
    return ", ".join(f"{count:,} {name}" for name, count in counts.items())


# --- JSON -------------------------------------------------------------------------------------------------------------


def key_text(key: bytes) -> str:
    """Return a key as text, or in hexadecimal if it is not printable."""
    try:
        text = key.decode()
    except UnicodeDecodeError:
        return "0x" + key.hex()
    return text if text.isprintable() else "0x" + key.hex()


def audit_as_json(report: AuditReport) -> dict[str, Any]:
    """Return the report as a JSON document."""
    return {
        "topics": list(report.topics),
        "at_ms": report.at_ms,
        "seconds": round(report.seconds, 3),
        "records": report.records,
        "bytes": report.bytes,
        "partitions": [partition_as_json(each) for each in report.partitions],
        "keys": keys_as_json(report.keys),
        "duplicates": None if report.duplicates is None else dataclasses.asdict(report.duplicates),
        "lags": [dataclasses.asdict(each) for each in report.lags],
        "against": None if report.comparison is None else dataclasses.asdict(report.comparison),
        "found": [
            {**dataclasses.asdict(each), "finding": each.finding.value, "fails": each in report.wrong}
            for each in report.found
        ],
        "fail_on": [finding.value for finding in report.fail_on],
    }


def keys_as_json(keys: TopKeys) -> dict[str, Any]:
    return {
        "records": keys.records,
        "distinct": len(keys.counts) if keys.is_exact else None,
        "is_exact": keys.is_exact,
        "error": keys.error,
        "top": [{"key": key_text(key), "records": count} for key, count in keys.top(KEYS_SHOWN)],
    }


def partition_as_json(each: PartitionReport) -> dict[str, Any]:
    tally = each.tally
    records, batches = tally.records, tally.batches
    return {
        "topic": tally.topic,
        "partition": tally.partition,
        "log": {
            "earliest": each.earliest,
            "stable": each.stable,
            "latest": each.latest,
            "compacted": each.is_compacted,
        },
        "start": tally.start,
        "end": tally.end,
        "first_offset": records.first,
        "last_offset": records.last,
        "records": records.count,
        "aborted": tally.aborted,
        "control": {"records": tally.control, "commits": tally.commits, "aborts": tally.aborts},
        "compacted": _stretches(tally.compacted),
        "missing": _stretches(tally.missing),
        "deleted": _stretches(tally.deleted),
        "null_keys": records.null_keys,
        "null_values": records.null_values,
        "record_bytes": _sizes(records.sizes),
        "timestamps": {
            "least": records.times.least,
            "most": records.times.most,
            "without": records.times.without,
            "steps_back": records.times.steps_back,
            "latest_by_ms": records.times.latest_by,
        },
        "batches": {
            "bytes": _sizes(batches.bytes),
            "records": _sizes(batches.records),
            "by_codec": batches.by_codec,
            "bytes_by_codec": batches.bytes_by_codec,
            "by_format": {str(magic): count for magic, count in sorted(batches.by_format.items())},
        },
        "producers": {
            "by_id": {
                str(producer_id): dataclasses.asdict(seen)
                for producer_id, seen in sorted(batches.producers.by_id.items())[:PRODUCERS_SHOWN]
            },
            "more": batches.producers.more or len(batches.producers.by_id) > PRODUCERS_SHOWN,
        },
        "keys": keys_as_json(records.keys),
    }


def _stretches(stretches: Stretches) -> dict[str, Any]:
    shown = [{"first": begin, "last": end - 1} for begin, end in stretches.shown]
    return {"offsets": stretches.offsets, "stretches": stretches.count, "shown": shown}


def _sizes(sizes: Sizes) -> dict[str, Any]:
    return {
        "count": sizes.count,
        "total": sizes.total,
        "least": sizes.least,
        "mean": round(sizes.mean, 2),
        "most": sizes.most,
        "by_bits": {str(bits): count for bits, count in sorted(sizes.by_bits.items())},
    }


# --- over all partitions ----------------------------------------------------------------------------------------------


def all_sizes(sizes: Iterable[Sizes]) -> Sizes:
    found = Sizes()
    for each in sizes:
        found = found.merge(each)
    return found


def all_times(partitions: Iterable[PartitionReport]) -> TimeBuckets:
    found = TimeBuckets()
    for each in partitions:
        found = found.merge(each.tally.records.times.buckets)
    return found


def all_codecs(partitions: Iterable[PartitionReport]) -> Mapping[str, tuple[int, int]]:
    """Return batches and bytes by codec."""
    batches: dict[str, int] = {}
    sizes: dict[str, int] = {}
    for each in partitions:
        batches = sums(batches, each.tally.batches.by_codec)
        sizes = sums(sizes, each.tally.batches.bytes_by_codec)
    return {name: (batches[name], sizes[name]) for name in sorted(batches)}


def lag_by_group(lags: Collection[GroupLag]) -> dict[str, int]:
    """Return the lag of each group over all partitions, the largest first."""
    found: dict[str, int] = {}
    for each in lags:
        found[each.group] = found.get(each.group, 0) + each.lag
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))
