"""`python -m integration.chaos produce`: ten million records while the broker is killed five times.

Lists each broken guarantee and exits with status 1 if there is one.
"""

from __future__ import annotations

import argparse
import functools
import logging
import random
import sys

import uvloop

from integration.chaos.faults import Kind, plan
from integration.chaos.records import SIZE
from integration.chaos.run import PARTITIONS, Outcome, run
from integration.embedded import at_full_speed

# For the interpreter, a full buffer, pending deliveries, and the memory that the allocator keeps between two outages.
# The peak is that of the process, so each process runs with one broker only.
_MIB_ALLOWED = 300


def main() -> int:
    """Run the command."""
    given = _arguments().parse_args()
    logging.getLogger("aiokwire").setLevel(logging.CRITICAL)  # outages of the broker are expected
    return _produce(given)


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m integration.chaos", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    produce = verbs.add_parser("produce", help="check that each acknowledged record is stored once and in order")
    produce.add_argument("--broker", default="embedded", help="embedded, or a release of Kafka")
    produce.add_argument("--records", type=int, default=10_000_000)
    produce.add_argument("--kills", type=int, default=5, help="SIGKILLs, spread over the run")
    produce.add_argument("--stops", type=int, default=1, help="SIGTERMs among them")
    produce.add_argument("--freezes", type=int, default=1, help="SIGSTOPs among them")
    produce.add_argument("--seed", type=int, default=1)
    produce.add_argument(
        "--delivery-timeout-ms", type=float, default=120_000, help="with a short timeout, records fail"
    )
    return parser


def _produce(given: argparse.Namespace) -> int:
    name = given.broker
    kinds = [Kind.KILL] * given.kills + [Kind.STOP] * given.stops + [Kind.FREEZE] * given.freezes
    faults = plan(random.Random(given.seed), given.records, kinds)
    print(f"{name}: {given.records:,} values of {SIZE} bytes to {PARTITIONS} partitions, seed {given.seed}", flush=True)
    with at_full_speed(name) as server:
        work = run(
            server,
            given.records,
            faults,
            report=functools.partial(print, flush=True),
            delivery_timeout_ms=given.delivery_timeout_ms,
        )
        outcome = uvloop.run(work)
    wrong = list(outcome.faults)
    if outcome.peak_mib > _MIB_ALLOWED:
        wrong.append(f"the client used {outcome.peak_mib:.0f} MiB, more than the limit of {_MIB_ALLOWED} MiB")
    _report(outcome, wrong)
    return 1 if wrong else 0


def _report(outcome: Outcome, wrong: list[str]) -> None:
    load, verdict = outcome.load, outcome.verdict
    print(
        f"  {load.accepted:,} accepted in {outcome.seconds:.1f} s ({outcome.cpu_seconds:.1f} s of the client's CPU), "
        f"{load.refused:,} refused; {verdict.acknowledged:,} acknowledged "
        f"({verdict.acknowledged_nowhere:,} without an offset), {verdict.failed:,} failed "
        f"({verdict.failed_but_stored:,} of those stored); buffered {outcome.buffered}, "
        f"peak memory {outcome.peak_mib:.0f} MiB"
    )
    for error, count in load.errors.most_common():
        print(f"  {count:,} times {error}")
    for fault in wrong:
        print(f"  WRONG: {fault}")
    if not wrong:
        print(f"  {verdict.stored:,} stored: each acknowledged record once, at its offset, in order")


if __name__ == "__main__":
    sys.exit(main())
