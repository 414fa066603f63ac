"""Where a record is filed: the directories and names of an archive. Plain functions without I/O.

```
topic=orders/date=2026-11-21/partition=0/orders-0-00000000000000000000-00000000000000004999.parquet
```

Directories are Hive's, so that every reader finds topic, date (of the timestamp, UTC) and partition as columns; they
are not in the files, where some readers would refuse them as there twice.
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

# What Hive has in place of a null.
NO_TIME: Final = "__HIVE_DEFAULT_PARTITION__"
# The first millisecond without a date: a timestamp in the wrong unit is not to make thousands of directories.
END_OF_TIME: Final = 253_402_300_800_000  # 10000-01-01

SUFFIX: Final = ".parquet"


@dataclasses.dataclass(frozen=True)
class Layout:
    """What all files of an archive have in common."""

    hourly: bool
    schema: str
    """Of the files, as Spark's DDL."""
    isolation: str

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def check(self, before: Mapping[str, Any], root: str) -> None:
        """Raises: ConfigurationError: the archive was begun with another one."""
        now = self.to_json()
        for name, value in before.items():
            if name in now and now[name] != value:
                raise ConfigurationError(
                    f"the archive at {root} was begun with {name} {value!r}, which is not {now[name]!r}: go on with "
                    "that, or begin another archive"
                )

    @property
    def unit(self) -> int:
        """Milliseconds of a slot."""
        return HOUR if self.hourly else DAY

    @property
    def slot_end(self) -> int:
        """The first slot that is none."""
        return END_OF_TIME // self.unit

    def slot(self, timestamp: int) -> int:
        """The day or hour since the epoch; -1 for a time that has no date of its own."""
        return timestamp // self.unit if 0 <= timestamp < END_OF_TIME else -1

    def folder(self, tp: TopicPartition, slot: int) -> str:
        """Where the records of a partition and a slot are."""
        if slot < 0:
            parts = [f"date={NO_TIME}"] + [f"hour={NO_TIME}"] * self.hourly
        else:
            time = datetime.datetime.fromtimestamp(slot * self.unit / 1000, datetime.UTC)
            parts = [f"date={time:%Y-%m-%d}"] + [f"hour={time.hour}"] * self.hourly
        return "/".join([f"topic={tp.topic}", *parts, f"partition={tp.partition}"])


def file_name(tp: TopicPartition, first: int, last: int) -> str:
    """By the offsets of the first and the last record."""
    topic = tp.topic
    if topic[0] in "_.":
        topic = f"topic{topic}"  # readers pass over files whose names begin like that
    return f"{topic}-{tp.partition}-{first:020}-{last:020}{SUFFIX}"


def temporary(path: str, attempt: str) -> str:
    """The name of a file until it is committed, in the same directory; readers pass over it."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/.{name}.{attempt}"


def is_temporary(path: str) -> bool:
    """Whether a file was never committed."""
    return path.rpartition("/")[2].startswith(".")


def is_data(path: str) -> bool:
    """Whether a file is one that readers of a directory take for part of the archive."""
    return path.endswith(SUFFIX) and not any(part.startswith((".", "_")) for part in path.split("/"))
