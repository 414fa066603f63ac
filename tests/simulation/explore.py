"""Play many histories: `python -m tests.simulation.explore --seeds 1000 [--first 0]`.

`--seed 17` plays one and prints its trace; `--groups` plays those of groups.
"""

from __future__ import annotations

import argparse
import logging
import pprint
import sys
import time
from types import ModuleType

from tests.simulation import groups, history


def main() -> int:
    """Return 1 as the exit status if a seed failed, else 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="number of seeds")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--seed", type=int, help="one seed: print its plan, its last events, its violations")
    parser.add_argument("--groups", action="store_true", help="histories of groups")
    parser.add_argument("--twice", action="store_true", help="play each twice and compare the traces")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    kind = groups if options.groups else history
    if options.seed is not None:
        return _one(kind, options.seed)
    failed: list[int] = []
    began = time.perf_counter()  # real time
    for seed in range(options.first, options.first + options.seeds):
        outcome = kind.play(seed)
        wrong = list(outcome.wrong)
        if options.twice and kind.play(seed).trace_hash != outcome.trace_hash:
            wrong.append("the second run differs")
        if wrong:
            failed.append(seed)
            print(f"seed {seed}: {len(wrong)} violations: {wrong[0][:300]}", flush=True)
    print(f"{options.seeds} seeds in {time.perf_counter() - began:.1f} s, {len(failed)} failed: {failed}")
    return 1 if failed else 0


def _one(kind: ModuleType, seed: int) -> int:
    logging.disable(logging.NOTSET)
    pprint.pprint(kind.draw(seed))
    outcome = kind.play(seed)
    print("\n".join(outcome.lines))
    print(f"{outcome.elapsed:.3f} s simulated, {outcome.turns} turns, {outcome.records} records, {outcome.trace_hash}")
    print("\n".join(outcome.wrong) or "no violations")
    return 1 if outcome.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
