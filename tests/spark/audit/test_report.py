"""Findings, and reports as tables, JSON, and HTML that loads and runs nothing."""

from __future__ import annotations

import base64
import dataclasses
import html.parser
import importlib.util
import json
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pytest

from aiokwire.errors import ConfigurationError
from aiokwire.spark.audit.against import Comparison, Difference
from aiokwire.spark.audit.duplicates import Duplicates, Repeated, parse_identity, source_options
from aiokwire.spark.audit.html import audit_as_html
from aiokwire.spark.audit.plots import draw_all, label
from aiokwire.spark.audit.report import (
    AuditReport,
    Finding,
    GroupLag,
    PartitionReport,
    audit_as_json,
    audit_verdict,
    judge,
    key_text,
    lag_by_group,
    milliseconds,
    parse_findings,
)
from aiokwire.spark.audit.sketches import Producer, Sizes, Stretches
from aiokwire.spark.audit.table import audit_tables
from aiokwire.spark.audit.tally import Batches, PartitionTally, Records, tally_times

EVIL = '<script>alert("1")</script>'


def partition(number: int = 0, *, compacted: bool | None = False, topic: str = "t", **changes: Any) -> PartitionReport:
    records = Records(100, 3, 109, sizes=Sizes.of([10] * 100))
    batches = Batches(bytes=Sizes.of([500, 700]), records=Sizes.of([50, 50]), by_codec={"lz4": 2})
    batches.bytes_by_codec, batches.by_format = {"lz4": 1200}, {2: 2}
    tally = dataclasses.replace(PartitionTally(topic, number, 0, 110, records, batches), **changes)
    return PartitionReport(tally, 0, 110, 110, compacted)


def report(*partitions: PartitionReport, fail_on: tuple[str, ...] = ("gaps",), **changes: Any) -> AuditReport:
    found = judge(partitions, None, (), None, skew_limit=2.0, max_lag=None)
    made = AuditReport(("t",), 1_700_000_000_000, 1.5, partitions, None, (), None, found, parse_findings(fail_on))
    return dataclasses.replace(made, **changes)


def stretches(*ranges: tuple[int, int]) -> Stretches:
    found = Stretches()
    for begin, end in ranges:
        found.add(begin, end)
    return found


def test_missing_offsets_are_a_finding_unless_the_topic_is_compacted() -> None:
    missing = stretches((5, 6), (8, 12))
    assert [(one.count, one.text) for one in report(partition(missing=missing)).wrong] == [
        (5, "5 offsets are missing: 5, 8 to 11")
    ]
    assert report(partition(missing=missing, compacted=None)).failed
    assert not report(partition(missing=missing, compacted=True)).failed
    assert not report(partition(compacted=True, aborted=4)).failed


def test_only_the_chosen_findings_fail_the_audit() -> None:
    each = partition(aborted=4)
    assert [one.finding for one in report(each).found] == [Finding.ABORTED]
    assert not report(each).failed
    assert report(each, fail_on=("aborted",)).failed
    with pytest.raises(ConfigurationError, match="no finding 'gap': choose from gaps, deleted"):
        parse_findings(["gap"])


def test_each_finding_names_its_partition_and_count() -> None:
    records = Records(3, times=tally_times(np.array([5000, 1000, 2000], np.int64)))
    batches = Batches(by_format={1: 7, 2: 1})
    held = PartitionReport(partition().tally, 0, 100, 110, False)
    found = judge(
        [partition(records=records, batches=batches, deleted=stretches((0, 9))), held],
        Duplicates("value", 10, 2, 1, {"t": 2}, ()),
        [GroupLag("billing", "t", 1, 5, 110, 105), GroupLag("audit", "t", 1, 100, 110, 10)],
        Comparison("lake", 1, 9, (), (Difference("t", 0, "value differs", 4, 5, 2),)),
        skew_limit=2.0,
        max_lag=50,
    )
    assert [(one.finding.value, one.where, one.count, one.text) for one in found] == [
        ("deleted", "t[0]", 9, "9 offsets were deleted by retention during the audit"),
        ("differences", "t[0]", 2, "offsets 4 to 5: value differs"),
        ("duplicates", "t", 2, "2 records repeat another by value"),
        ("disorder", "t[0]", 1, "1 records are earlier than the one before them, by up to 4.0 s"),
        ("open", "t[0]", 10, "10 offsets wait for an open transaction, from 100 on"),
        ("lag", "t[1]", 105, "group billing is 105 offsets behind"),
        ("old-formats", "t[0]", 7, "7 batches of format 1"),
    ]


def test_a_partition_much_larger_than_the_others_is_skewed() -> None:
    many = Records(5000)
    parts = [
        partition(number, records=many, batches=Batches(bytes=Sizes.of([size])))
        for number, size in enumerate((10, 10, 100))
    ]
    [found] = judge(parts, None, (), None, skew_limit=2.0, max_lag=None)
    assert (found.finding, found.where, found.text) == (
        Finding.SKEW,
        "t[2]",
        "100 bytes, 2.5 times the mean of the partitions",
    )
    few = [dataclasses.replace(each, tally=dataclasses.replace(each.tally, records=Records(5))) for each in parts]
    assert not judge(few, None, (), None, skew_limit=2.0, max_lag=None)


def test_keys_and_durations_are_shown_in_readable_form() -> None:
    assert [key_text(key) for key in (b"42", "Zürich".encode(), b"\xff\x00", b"a\nb", b"")] == [
        "42", "Zürich", "0xff00", "0x610a62", "",
    ]  # fmt: skip
    assert [milliseconds(count) for count in (0, 999, 1500, 60_000, 5_400_000, 200_000_000)] == [
        "0 ms", "999 ms", "1.5 s", "1.0 min", "1.5 h", "2.3 days",
    ]  # fmt: skip
    lags = [GroupLag("a", "t", 0, 0, 0, 3), GroupLag("b", "t", 0, 0, 0, 9), GroupLag("a", "t", 1, 0, 0, 4)]
    assert list(lag_by_group(lags).items()) == [("b", 9), ("a", 7)]


def test_duplicates_are_identified_by_columns_or_a_header() -> None:
    assert parse_identity("key, value") == (("key", "value"), None)
    assert parse_identity("header:trace id") == (("headers",), "trace id")
    with pytest.raises(ConfigurationError, match="not 'offset'"):
        parse_identity("offset")
    given = {"subscribe": "t", "Columns": "value", "includeHeaders": "true"}
    assert source_options(given, "key") == {
        "subscribe": "t",
        "columns": "key,topic,partition,offset",
        "includeHeaders": "false",
        "kafka.isolation.level": "read_committed",
    }


# --- how it is shown --------------------------------------------------------------------------------------------------


def full() -> AuditReport:
    """Return a report in which no part is empty."""
    first = partition(aborted=4, control=2, missing=stretches((5, 6)), compacted=None)
    keys = first.tally.records.keys.add({EVIL.encode(): 60, b"$x_{1}$ \xc3\xbc": 30, b"\xff": 10})
    first.tally.records.keys = keys
    first.tally.records.times = tally_times(np.arange(0, 5_000_000, 1000, dtype=np.int64))
    first.tally.batches.producers.add(9, Producer(0, 109, 0, 2, 2, 100, True))
    first.tally.compacted = stretches(*((at, at + 1) for at in range(20, 80, 2)))
    parts = (first, partition(1, compacted=None, topic=EVIL))
    duplicates = Duplicates("key,value", 200, 2, 1, {"t": 2}, (Repeated("t", 3, (0, 4), (1, 9)),))
    lags = (GroupLag(EVIL, "t", 0, 5, 110, 105),)
    comparison = Comparison(EVIL, 3, 200, (), (Difference("t", 0, "key differs", 4, 5, 2),))
    found = judge(parts, duplicates, lags, comparison, skew_limit=2.0, max_lag=1)
    fail_on = parse_findings(["gaps", "lag"])
    return AuditReport(("t", EVIL), 1_700_000_000_000, 1.5, parts, duplicates, lags, comparison, found, fail_on)


class _Document(html.parser.HTMLParser):
    """The elements, attributes and text of a document; checks that each element is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in ("meta", "img"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_the_document_loads_and_runs_nothing_and_escapes_the_content_of_the_topic() -> None:
    text = audit_as_html(full())
    document = _Document(text)
    assert not {"script", "link", "iframe", "object", "embed", "form", "a"} & set(document.tags)
    assert all(value.startswith("data:image/svg+xml;base64,") for name, value in document.attributes if name == "src")
    assert not [name for name, _ in document.attributes if name.startswith("on") or name in ("href", "action")]
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'; img-src data:") in document.attributes
    assert "url(" not in text
    assert "@import" not in text
    assert sum(EVIL in each for each in document.text) >= 4
    shown = " ".join(document.text)
    for part in (
        "failed",
        "1 offsets are missing: 5",
        "and 10 more stretches",
        "0xff",
        "105",
        "key differs",
    ):
        assert part in shown


def test_control_characters_and_writing_directions_are_spelled_out() -> None:
    sneaky = partition()
    sneaky.tally.records.keys = sneaky.tally.records.keys.add({b"k": 1})
    text = audit_as_html(dataclasses.replace(report(sneaky), topics=("a\u202eb\x00\n",)))
    assert r"a\u{202e}b\u{0}\u{a}" in text


def test_plots_are_svg_paths_without_text() -> None:
    pytest.importorskip("matplotlib")
    made = full()
    plots = dict(draw_all(made))
    assert list(plots) == [
        "Offsets by content and partition", "Bytes by partition", "Records over time", "Records in a batch",
        "Bytes of a batch", "Bytes of key and value", "Most frequent keys", "Lag by group",
    ]  # fmt: skip
    for image in plots.values():
        root = ET.fromstring(image)
        names = {each.tag.rpartition("}")[2] for each in root.iter()}
        assert "path" in names
        assert not {"script", "text", "image", "foreignObject"} & names
    assert dict(draw_all(made)) == plots, "equal reports are equal documents"
    assert label("$x$") == r"\$x\$"
    assert len(label("k" * 100)) == 32


def test_an_empty_topic_has_a_document_too() -> None:
    empty = PartitionReport(PartitionTally("t", 0, 7, 7), 7, 7, 7, None)
    assert draw_all(report(empty)) == []
    assert "passed: nothing found" in _Document(audit_as_html(report(empty))).text
    assert audit_as_json(report(empty))["partitions"][0]["first_offset"] == -1


def test_without_matplotlib_the_document_names_the_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    assert "pip install matplotlib" in audit_as_html(full())


def test_the_json_report_is_valid_and_complete() -> None:
    found = json.loads(json.dumps(audit_as_json(full())))
    assert [each["fails"] for each in found["found"]] == [True, False, False, False, True]
    first = found["partitions"][0]
    assert first["missing"] == {"offsets": 1, "stretches": 1, "shown": [{"first": 5, "last": 5}]}
    assert first["compacted"]["stretches"] == 30
    assert first["keys"]["top"][0] == {"key": EVIL, "records": 60}
    assert first["producers"]["by_id"]["9"]["transactional"] is True
    assert found["duplicates"]["shown"][0]["first"] == [0, 4]
    assert found["against"]["differences"][0]["kind"] == "key differs"


def test_the_terminal_has_a_table_for_each_part() -> None:
    tables = list(audit_tables(full()))
    assert [each.title for each in tables] == [
        "200 records in 1.5 s", "Compression", "Most frequent keys", "Duplicates by key,value", "Consumer groups",
        "Found",
    ]  # fmt: skip
    assert tables[-1].rows[0][:3] == ["fails", "gaps", "t[0]"]
    assert all(len(row) == len(table.heads) for table in tables for row in table.rows)


def test_the_verdict_names_findings_that_do_not_fail_the_audit() -> None:
    """ "Found" listed disorder, and the line below it was "nothing wrong"."""
    times = tally_times(np.array([5, 3, 4]))
    late = partition(records=dataclasses.replace(Records(3, 0, 2), times=times))
    assert audit_verdict(report(late)) == "passed; findings that do not fail it: 1 disorder"
    assert audit_verdict(report(late, fail_on=("disorder",))) == "FAILED: 1 disorder"
    both = report(late, partition(1, missing=stretches((4, 6))))
    assert audit_verdict(both) == "FAILED: 1 gaps; findings that do not fail it: 1 disorder"
    assert audit_verdict(report(partition())) == "passed: nothing found"
    assert audit_verdict(both) in _Document(audit_as_html(both)).text


def test_images_in_the_document_are_complete() -> None:
    pytest.importorskip("matplotlib")
    sources = [value for name, value in _Document(audit_as_html(full())).attributes if name == "src"]
    assert len(sources) == 8
    for source in sources:
        ET.fromstring(base64.b64decode(source.removeprefix("data:image/svg+xml;base64,")))
