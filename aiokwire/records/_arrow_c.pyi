from collections.abc import Sequence

from typing_extensions import CapsuleType

from aiokwire.records._columns import Columns

def export(columns: Columns, names: Sequence[str]) -> CapsuleType:
    """These columns as a capsule `arrow_array` of Arrow's C data interface: a record batch, not copied.

    Nothing can be added to them afterwards. Raises: KeyError: a name that is not a column.
    """
