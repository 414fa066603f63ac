"""Archives of the tests, read as anybody reads them: a directory of Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.dataset as ds


def rows_of(path: Path) -> list[dict[str, Any]]:
    """What a plain reader of the directory finds, in the order of partition and offset."""
    found: list[dict[str, Any]] = ds.dataset(path, format="parquet", partitioning="hive").to_table().to_pylist()
    return sorted(found, key=lambda row: (str(row["topic"]), row["partition"], row["offset"]))
