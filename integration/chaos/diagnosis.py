"""The current state of a worker process, as text: written when it receives SIGUSR1."""

from __future__ import annotations

import asyncio
import io
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiokwire import Worker
    from aiokwire.worker.runtime import Runtime

SIGNAL = signal.SIGUSR1


def dump_on_signal(worker: Worker, path: Path) -> None:
    """Append the state of a worker to a file at each SIGUSR1, from now on."""

    def dump() -> None:
        with path.open("a") as file:
            file.write("\n".join(describe(worker)) + "\n")

    asyncio.get_running_loop().add_signal_handler(SIGNAL, dump)
    path.touch()


def describe(worker: Worker) -> Iterator[str]:
    """Yield the lines about a worker: its queue, its consumer, its tasks."""
    yield repr(worker)
    runtime = worker._runtime
    if runtime is None:
        return
    yield from _queue(runtime)
    yield from _consumer(runtime)
    for task in sorted(asyncio.all_tasks(), key=lambda task: task.get_name()):
        stack = io.StringIO()
        task.print_stack(file=stack)
        lines = [line.strip() for line in stack.getvalue().splitlines() if line.lstrip().startswith("File")]
        yield f"task {task.get_name()}: " + " < ".join(line.split("aiokwire/")[-1] for line in reversed(lines[-3:]))


def _queue(runtime: Runtime) -> Iterator[str]:
    queue = runtime.queue
    yield (
        f"queue: {len(queue._idle)} idle executors, one of them woken {queue._is_waking}, a record can be taken "
        f"{queue._ordering.can_take}, {queue._full} full partitions"
    )
    for line in runtime._lines.values():
        yield f"line {line.handler.name}: {len(line.ready)} ready, {line.running} running"
    yield f"retries: {len(runtime._timer._waiting)} waiting; undelivered: {len(runtime._settlement._undelivered)}"
    for tp, each in sorted(queue.partitions.items()):
        yield (
            f"{tp}: in flight {each.in_flight}, running {each.running}, full {each.is_full}, closing {each.is_closing},"
            f" completed {each.completed.committable()}, committed {each.committed}"
        )


def _consumer(runtime: Runtime) -> Iterator[str]:
    consumer = runtime.consumer
    health = consumer.health()
    yield f"group: {health.group}"
    yield f"consumer: awaited {health.is_awaited}, memory {health.memory_in_use}, blocked {health.blocked}"
    for partition in health.partitions.values():
        yield f"{partition}; {partition.state.name}; idle {partition.idle:.1f} s"
    for tp, state in sorted(consumer._parts.subscription.states.items()):
        yield (
            f"{tp}: held back {state.held_back}, in flight {state.attempt.in_flight}, chunks {len(state.chunks)}, "
            f"fetch offset {state.cursor.fetch_offset}, end {state.ends.end_offset}, retry at {state.attempt.retry_at}"
        )
