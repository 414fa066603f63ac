"""The consumer that `memory` measures, with only the modules it needs.

Arguments: the bootstrap address, the topic, `fetch_memory`, and the number of records. Prints MiB
as JSON.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

import anyio
import uvloop

from aiokwire import Consumer

_MIB = 1024 * 1024


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / _MIB


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def _read(bootstrap: str, topic: str, budget: int, total: int) -> dict[str, float]:
    before = _resident()
    held = 0
    async with Consumer(
        topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest", fetch_memory=budget
    ) as consumer:
        for _ in range(30):  # a busy handler
            await anyio.sleep(0.1)
            held = max(held, consumer.memory_in_use)
        waiting = _resident()
        seen = 0
        for _ in range(100):  # a slow handler
            seen += len(await consumer.getmany(timeout=5))
            held = max(held, consumer.memory_in_use)
            await anyio.sleep(0.01)
        slow = _resident()
        while seen < total:  # a fast handler
            records = await consumer.getmany(5000, timeout=5)
            if not records:
                break
            seen += len(records)
            held = max(held, consumer.memory_in_use)
    return {
        "before": before,
        "waiting": waiting,
        "slow": slow,
        "peak": _peak(),
        "held": held / _MIB,
        "seen": seen,
    }


if __name__ == "__main__":
    address, name, memory, count = sys.argv[1:]
    print(json.dumps(uvloop.run(_read(address, name, int(memory), int(count)))))
