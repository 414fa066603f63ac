"""Reads the archives of the tests as a plain directory of Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.dataset as ds


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a plain read of the directory, by partition and offset."""
    found: list[dict[str, Any]] = ds.dataset(path, format="parquet", partitioning="hive").to_table().to_pylist()
    return sorted(found, key=lambda row: (str(row["topic"]), row["partition"], row["offset"]))
