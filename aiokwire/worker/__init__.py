"""The worker: handlers that are called once per record, many at a time, in order.

handlers           functions and their topics       signatures       a handler's arguments
decoding           from an annotation to a decoder  json_values      the standard library's types
context            a handler's view of its record and of the worker
completed_offsets  what is finished of a partition  offset_metadata  the same in a commit's metadata
ordering           which record runs next           outcomes         what follows an exception
dead_letters       keeps records that failed
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiokwire._lazy import lazy_names

if TYPE_CHECKING:
    from aiokwire.worker.context import Context as Context
    from aiokwire.worker.dead_letters import DeadLetters as DeadLetters
    from aiokwire.worker.handlers import Handler as Handler, HandlerRegistry as HandlerRegistry
    from aiokwire.worker.outcomes import (
        DeadLetter as DeadLetter,
        Retry as Retry,
        RetryPolicy as RetryPolicy,
        Skip as Skip,
    )
    from aiokwire.worker.signatures import Key as Key
else:
    __all__, __getattr__, __dir__ = lazy_names(
        globals(),
        {
            "worker.context": "Context",
            "worker.dead_letters": "DeadLetters",
            "worker.handlers": "Handler HandlerRegistry",
            "worker.outcomes": "DeadLetter Retry RetryPolicy Skip",
            "worker.signatures": "Key",
        },
    )
