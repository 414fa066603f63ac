"""The faults of a broker during a run: drawn from a seed, due by the number of accepted records."""

from __future__ import annotations

import enum
import random
from collections.abc import Sequence
from dataclasses import dataclass

import anyio

from aiokwire.threads import run_in_thread
from integration.kafka import KafkaServer

_PAUSE = 0.8, 2.0  # seconds that a broker is down, or frozen
_JITTER = 0.05  # seconds between the due record and the signal, so that a fault may hit any activity


class Kind(enum.Enum):
    """The kind of a fault."""

    KILL = "SIGKILL"
    STOP = "SIGTERM"
    FREEZE = "SIGSTOP and SIGCONT"


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: starts `delay` seconds after `at` accepted records, lasts `pause` seconds."""

    kind: Kind
    at: int
    delay: float
    pause: float


def plan(rng: random.Random, records: int, kinds: Sequence[Kind]) -> list[Fault]:
    """Return the faults of a run in random order, each near the middle of its part of the run."""
    shuffled = list(kinds)
    rng.shuffle(shuffled)
    part = records / len(shuffled)
    faults = []
    for number, kind in enumerate(shuffled):
        at = int(part * (number + rng.uniform(0.3, 0.7)))
        away = 0.0 if kind is not Kind.FREEZE and rng.random() < 0.5 else rng.uniform(*_PAUSE)
        faults.append(Fault(kind, at, rng.uniform(0, _JITTER), away))
    return faults


async def inflict(server: KafkaServer, fault: Fault) -> float:
    """Inflict and undo a fault.

    Return the seconds from the signal until the broker responds again.
    """
    await anyio.sleep(fault.delay)
    began = anyio.current_time()
    if fault.kind is Kind.FREEZE:
        server.freeze()
        try:
            await anyio.sleep(fault.pause)
        finally:
            server.thaw()
    else:
        await run_in_thread(server.kill if fault.kind is Kind.KILL else server.stop)
        await anyio.sleep(fault.pause)
        await run_in_thread(server.restart)
    return anyio.current_time() - began
