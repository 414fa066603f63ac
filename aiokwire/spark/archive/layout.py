"""The directories and file names of an archive. Pure functions.

```
topic=orders/date=2026-11-21/partition=0/orders-0-00000000000000000000-00000000000000004999.parquet
```

Directories are Hive's, so that every reader finds topic, date (of the timestamp, UTC) and partition
as columns. The files do not repeat them: some readers reject a column that exists twice.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Mapping
from typing import Any, Final

from aiokwire.errors import ConfigurationError
from aiokwire.types import TopicPartition

DAY: Final = 86_400_000
HOUR: Final = 3_600_000

# Hive's name for null.
NO_TIME: Final = "__HIVE_DEFAULT_PARTITION__"
# The first millisecond without a date: a timestamp in the wrong unit must not create thousands of directories.
END_OF_TIME: Final = 253_402_300_800_000  # 10000-01-01

SUFFIX: Final = ".parquet"


@dataclasses.dataclass(frozen=True)
class Layout:
    """The properties that all files of an archive share."""

    hourly: bool
    schema: str
    """Of the files, in Spark's DDL."""
    isolation: str

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def check(self, before: Mapping[str, Any], root: str) -> None:
        """Raises: ConfigurationError: the archive was created with another layout."""
        now = self.to_json()
        for name, value in before.items():
            if name in now and now[name] != value:
                raise ConfigurationError(
                    f"the archive at {root} was created with {name} {value!r}, not {now[name]!r}: keep its setting, or "
                    "create another archive"
                )

    @property
    def unit(self) -> int:
        """Milliseconds of a slot."""
        return HOUR if self.hourly else DAY

    @property
    def slot_end(self) -> int:
        """The first number that is not a valid slot."""
        return END_OF_TIME // self.unit

    def slot(self, timestamp: int) -> int:
        """Return the day or hour since the epoch; -1 for a time without a date."""
        return timestamp // self.unit if 0 <= timestamp < END_OF_TIME else -1

    def folder(self, tp: TopicPartition, slot: int) -> str:
        """Return the directory of a partition and a slot."""
        if slot < 0:
            parts = [f"date={NO_TIME}"] + [f"hour={NO_TIME}"] * self.hourly
        else:
            time = datetime.datetime.fromtimestamp(slot * self.unit / 1000, datetime.UTC)
            parts = [f"date={time:%Y-%m-%d}"] + [f"hour={time.hour}"] * self.hourly
        return "/".join([f"topic={tp.topic}", *parts, f"partition={tp.partition}"])


def file_name(tp: TopicPartition, first: int, last: int) -> str:
    """Return the name of a file by the offsets of its first and last record."""
    topic = tp.topic
    if topic[0] in "_.":
        topic = f"topic{topic}"  # readers ignore files whose names begin with these
    return f"{topic}-{tp.partition}-{first:020}-{last:020}{SUFFIX}"


def temporary(path: str, attempt: str) -> str:
    """Return the name of a file before its commit, in the same directory; readers ignore it."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/.{name}.{attempt}"


def is_temporary(path: str) -> bool:
    """Whether a path is that of an uncommitted file."""
    return path.rpartition("/")[2].startswith(".")


def is_data(path: str) -> bool:
    """Whether readers of the directory take a file as part of the archive."""
    return path.endswith(SUFFIX) and not any(part.startswith((".", "_")) for part in path.split("/"))
