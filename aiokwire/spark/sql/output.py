"""The rows of a query as a table, JSON lines, CSV or Parquet.

Rows are fetched by Spark partition, so that large results need little memory on the driver.
"""

from __future__ import annotations

import csv
import datetime
import enum
import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TextIO

from aiokwire.errors import ConfigurationError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class RowForm(enum.Enum):
    """The format of rows."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


@dataclass(frozen=True)
class Shown:
    """The count of rows written."""

    rows: int
    more: bool
    """Whether the limit left rows out."""


def write_rows(
    frame: DataFrame, form: RowForm, out: TextIO, *, limit: int | None = None, check: Callable[[], None] | None = None
) -> Shown:
    """Write JSON lines, or CSV with a header; `check` is called between rows and may raise."""
    names = frame.columns
    if form is RowForm.CSV:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(names)
    count = 0
    more = False
    for row in rows_of(frame, limit):
        if check is not None and count % 256 == 0:
            check()
        if count == limit:
            more = True
            break
        if form is RowForm.CSV:
            writer.writerow([text_of(value, "") for value in row])
        else:
            plain = {name: plain_value(value) for name, value in zip(names, row, strict=True)}
            out.write(json.dumps(plain, ensure_ascii=False, separators=(",", ":")) + "\n")
        count += 1
    out.flush()
    return Shown(count, more)


def take_rows(frame: DataFrame, limit: int | None) -> tuple[list[list[object]], Shown]:
    """Return at most `limit` rows for a table, as numbers and texts."""
    rows = [[cell(value) for value in row] for row in rows_of(frame, limit)]
    more = limit is not None and len(rows) > limit
    rows = rows[:limit]
    return rows, Shown(len(rows), more)


def rows_of(frame: DataFrame, limit: int | None) -> Iterator[Sequence[Any]]:
    """Return the rows, at most one more than `limit`."""
    if limit is None:
        return frame.toLocalIterator(prefetchPartitions=True)
    return itertools.chain(frame.limit(limit + 1).collect())


def write_parquet(frame: DataFrame, path: str) -> None:
    """Write rows as Parquet.

    Raises: ConfigurationError: the path exists.
    """
    from pyspark.errors import AnalysisException

    try:
        frame.write.mode("errorifexists").parquet(path)
    except AnalysisException as error:
        if "PATH_ALREADY_EXISTS" in str(error):
            raise ConfigurationError(f"{path} exists: choose another path") from None
        raise


# --- values -----------------------------------------------------------------------------------------------------------


def plain_value(value: Any) -> Any:
    """Convert a value for JSON: bytes to text or hexadecimal, times to ISO 8601."""
    if isinstance(value, (bytes, bytearray)):
        return text_of_bytes(bytes(value))
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no numbers for these
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, tuple):  # a struct is a Row, which is a tuple with names
        names = getattr(value, "__fields__", None)
        parts = [plain_value(each) for each in value]
        return parts if names is None else dict(zip(names, parts, strict=True))
    if isinstance(value, Mapping):
        return {text_of(key, "null"): plain_value(each) for key, each in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [plain_value(each) for each in value]
    return value


def text_of_bytes(data: bytes) -> str:
    """Return bytes as text if they are UTF-8, else in hexadecimal after 0x."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return "0x" + data.hex()


def text_of(value: Any, null: str) -> str:
    """Return a value as text; composite values as JSON."""
    if value is None:
        return null
    plain = plain_value(value)
    if isinstance(plain, str):
        return plain
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))


def cell(value: Any) -> object:
    """Return a value for a table: numbers stay numbers, which are aligned right."""
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else text_of(value, "null")
