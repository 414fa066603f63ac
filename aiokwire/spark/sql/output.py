"""The rows of a query as a table, JSON lines, CSV or Parquet.

Rows are taken a partition of Spark's at a time, so that large results need little memory on the driver.
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
    """How rows are written."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


@dataclass(frozen=True)
class Shown:
    """What was written."""

    rows: int
    more: bool
    """Whether the limit left some out."""


def write_rows(
    frame: DataFrame, form: RowForm, out: TextIO, *, limit: int | None = None, check: Callable[[], None] | None = None
) -> Shown:
    """JSON lines, or CSV with a head; `check` is called between rows, and may raise to end it."""
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
    """Rows for a table of at most `limit`, as numbers and texts."""
    rows = [[cell(value) for value in row] for row in rows_of(frame, limit)]
    more = limit is not None and len(rows) > limit
    rows = rows[:limit]
    return rows, Shown(len(rows), more)


def rows_of(frame: DataFrame, limit: int | None) -> Iterator[Sequence[Any]]:
    """The rows, and one more than `limit` where there are more."""
    if limit is None:
        return frame.toLocalIterator(prefetchPartitions=True)
    return itertools.chain(frame.limit(limit + 1).collect())


def write_parquet(frame: DataFrame, path: str) -> None:
    """Raises: ConfigurationError: there is something at the path already."""
    from pyspark.errors import AnalysisException

    try:
        frame.write.mode("errorifexists").parquet(path)
    except AnalysisException as error:
        if "PATH_ALREADY_EXISTS" in str(error):
            raise ConfigurationError(f"there is something at {path} already: choose another place") from None
        raise


# --- values -----------------------------------------------------------------------------------------------------------


def plain_value(value: Any) -> Any:
    """A value as JSON has it: bytes as text, or in hexadecimal; times in ISO 8601."""
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
    """Text where it is some, else 0x and the bytes in hexadecimal."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return "0x" + data.hex()


def text_of(value: Any, null: str) -> str:
    """A value as one text; what has parts is JSON."""
    if value is None:
        return null
    plain = plain_value(value)
    if isinstance(plain, str):
        return plain
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))


def cell(value: Any) -> object:
    """A value in a table: numbers stay numbers, so that they stand to the right."""
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else text_of(value, "null")
