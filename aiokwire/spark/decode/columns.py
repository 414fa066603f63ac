"""Types and helpers shared by the decoders of JSON and Avro."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pyarrow as pa

Column: TypeAlias = "pa.Array[Any]"
Faults: TypeAlias = dict[int, str]
"""The reason for each row that cannot be decoded."""


def column_of(found: list[Any], make: Callable[[list[Any]], Column], faults: Faults) -> Column:
    """Build a column with `make`; values that it refuses become null and are added to `faults`."""
    try:
        return make(found)
    except (ValueError, TypeError, OverflowError):
        pass
    for row, value in enumerate(found):
        try:
            make([value])
        except (ValueError, TypeError, OverflowError) as error:
            found[row] = None
            faults[row] = str(error)
    return make(found)
