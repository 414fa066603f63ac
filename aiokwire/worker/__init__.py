"""The worker: handlers that are called once per record, many at a time, in order.

worker             the public worker                runtime          its clients and tasks
config             options                          work_queue       what is fetched, within bounds
executor           calls handlers                   settlement       decides after an attempt
committer          commits offsets                  transactional    commits with what was sent
rebalance          revoked and assigned partitions
batching           batches of records               batch_settlement what follows their attempts
handlers           functions and their topics       signatures       a handler's arguments
batch_arguments    the arguments of handlers of batches
decoding           from an annotation to a decoder  json_values      the standard library's types
context            a handler's view of its record and of the worker
completed_offsets  what is finished of a partition  offset_metadata  the same in a commit's metadata
ordering           which record runs next           outcomes         what follows an exception
dead_letters       keeps records that failed        metrics          outcomes of attempts
health             what is not finished, and why
periodic           handlers without a record         periodic_runs    calls them at their times
retry_topics       their names and records          delayed_records  waits until they are due
rate_limit         calls per second
circuit_breaker    when calls pause                 circuits         pauses partitions, reports
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiokwire._lazy import lazy_names

if TYPE_CHECKING:
    from aiokwire.worker.circuit_breaker import CircuitBreaker as CircuitBreaker
    from aiokwire.worker.circuits import CircuitClosed as CircuitClosed, CircuitOpened as CircuitOpened
    from aiokwire.worker.config import WorkerConfig as WorkerConfig, WorkerOptions as WorkerOptions
    from aiokwire.worker.context import Context as Context
    from aiokwire.worker.completed_offsets import OffsetRange as OffsetRange
    from aiokwire.worker.dead_letters import (
        DeadLetters as DeadLetters,
        LetterHeader as LetterHeader,
        Origin as Origin,
        parsed_origin as parsed_origin,
        without_error_headers as without_error_headers,
    )
    from aiokwire.worker.handlers import Handler as Handler, HandlerRegistry as HandlerRegistry
    from aiokwire.worker.health import (
        WorkerHealth as WorkerHealth,
        WorkerPartitionHealth as WorkerPartitionHealth,
    )
    from aiokwire.worker.offset_metadata import decode_ranges as decode_ranges, encode_ranges as encode_ranges
    from aiokwire.worker.outcomes import (
        BatchError as BatchError,
        DeadLetter as DeadLetter,
        Retry as Retry,
        RetryPolicy as RetryPolicy,
        Skip as Skip,
    )
    from aiokwire.worker.periodic import PeriodicContext as PeriodicContext, PeriodicHandler as PeriodicHandler
    from aiokwire.worker.rate_limit import RateLimit as RateLimit
    from aiokwire.worker.signatures import Key as Key
    from aiokwire.worker.worker import Worker as Worker
else:
    __all__, __getattr__, __dir__ = lazy_names(
        globals(),
        {
            "worker.circuit_breaker": "CircuitBreaker",
            "worker.circuits": "CircuitClosed CircuitOpened",
            "worker.config": "WorkerConfig WorkerOptions",
            "worker.context": "Context",
            "worker.completed_offsets": "OffsetRange",
            "worker.dead_letters": "DeadLetters LetterHeader Origin parsed_origin without_error_headers",
            "worker.handlers": "Handler HandlerRegistry",
            "worker.health": "WorkerHealth WorkerPartitionHealth",
            "worker.offset_metadata": "decode_ranges encode_ranges",
            "worker.outcomes": "BatchError DeadLetter Retry RetryPolicy Skip",
            "worker.periodic": "PeriodicContext PeriodicHandler",
            "worker.rate_limit": "RateLimit",
            "worker.signatures": "Key",
            "worker.worker": "Worker",
        },
    )
