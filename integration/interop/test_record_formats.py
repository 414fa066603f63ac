"""DumpLogSegments of three releases reads our batches, in every message format and codec.

The oldest release is needed for LZ4 in format 0: only it requires the wrong header checksum of the
first releases.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from aiokwire.records import BatchBuilder
from aiokwire.types import Compression
from integration.kafka import JavaTools, MissingPrerequisite

NEW = "org.apache.kafka.tools.DumpLogSegments"
OLD = "kafka.tools.DumpLogSegments"
NOW = 1_700_000_000_000
RECORDS = 40


def sealed(magic: int, codec: Compression, base_offset: int, *, stamped: bool) -> bytes:
    """Build a batch with everything its format can contain, including nulls and empty values."""
    builder = BatchBuilder(magic, 1 << 20)
    for index in range(RECORDS):
        key = b"k%d" % index if index % 4 else None
        value = (b"some value %d " % index) * (index % 7) if index % 5 else None
        headers = [("h", b"x"), ("n", None)] if magic == 2 and index % 3 == 0 else ()
        builder.append(NOW + base_offset + index, key, value, headers)
    return bytes(
        builder.seal(
            compression=codec,
            base_offset=base_offset,
            leader_epoch=0 if magic == 2 else -1,
            producer_id=9 if stamped else -1,
            producer_epoch=1 if stamped else -1,
            base_sequence=base_offset if stamped else -1,
            log_append_time=NOW + base_offset + RECORDS if stamped and magic else None,
        )
    )


@pytest.mark.parametrize(
    ("magic", "version", "main"),
    [
        (2, "4.3.1", NEW),
        (1, "4.3.1", NEW),
        (0, "4.3.1", NEW),
        (1, "0.10.2.2", OLD),
        (0, "0.10.2.2", OLD),
        (0, "0.8.2.2", OLD),
    ],
)
@pytest.mark.timeout(120)
def test_dump_log_segments_reads_every_format_and_codec(magic: int, version: str, main: str, tmp_path: Path) -> None:
    data, base_offset = b"", 0
    for codec in Compression:
        if codec is Compression.ZSTD and magic < 2:
            continue
        for stamped in (False, True):
            data += sealed(magic, codec, base_offset, stamped=stamped)
            base_offset += RECORDS
    segment = tmp_path / "t-0" / f"{0:020}.log"
    segment.parent.mkdir()
    segment.write_bytes(data)
    try:
        tools = JavaTools("", version)
        done = tools.run(main, "--deep-iteration", "--print-data-log", "--files", str(segment)).checked()
    except MissingPrerequisite as missing:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"missing: {missing}")
    output = done.stdout + done.stderr
    assert {int(offset) for offset in re.findall(r"\boffset: (\d+)", output)} == set(range(base_offset))
    assert set(re.findall(r"isvalid: (\w+)", output, re.IGNORECASE)) == {"true"}
    for index in (1, RECORDS - 1):
        assert output.count((b"some value %d " % index).decode()) >= base_offset // RECORDS
