"""The worker: handlers that are called once per record, many at a time, in order.

context            a handler's view of its record and of the worker
completed_offsets  what is finished of a partition  offset_metadata  the same in a commit's metadata
ordering           which record runs next           outcomes         what follows an exception
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiokwire._lazy import lazy_names

if TYPE_CHECKING:
    from aiokwire.worker.context import Context as Context
    from aiokwire.worker.outcomes import (
        DeadLetter as DeadLetter,
        Retry as Retry,
        RetryPolicy as RetryPolicy,
        Skip as Skip,
    )
else:
    __all__, __getattr__, __dir__ = lazy_names(
        globals(),
        {
            "worker.context": "Context",
            "worker.outcomes": "DeadLetter Retry RetryPolicy Skip",
        },
    )
