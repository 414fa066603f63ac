"""A plain comparison of two ledgers: the producer's deliveries and the stored records."""

from __future__ import annotations

from dataclasses import dataclass, field

from integration.chaos.ledger import FAILED, NOWHERE, Ledger, Run

_SHOWN = 20  # faults listed for one partition


@dataclass(slots=True)
class Verdict:
    """The result of the comparison; `faults` is empty if every guarantee holds."""

    stored: int = 0
    acknowledged: int = 0
    acknowledged_nowhere: int = 0  # of those: without an offset, which the response to a retry may lack
    failed: int = 0
    failed_but_stored: int = 0
    faults: list[str] = field(default_factory=list)


def judge(account: Ledger, found: Ledger) -> Verdict:
    """Compare the deliveries of a producer with the stored records.

    Acknowledged records must be stored once at their offsets, failed ones at most once, all in
    order.
    """
    verdict = Verdict(stored=found.count(), acknowledged=account.count(), failed=account.count(failed=True))
    for partition, (promised, stored) in enumerate(zip(account.runs, found.runs, strict=True)):
        faults = [*_disorder(stored), *_foreign(promised, stored)]
        for run in promised:
            there = _overlaps(run, stored)
            if run.offset == FAILED:
                verdict.failed_but_stored += sum(part.count for part in there)
            else:
                verdict.acknowledged_nowhere += run.count if run.offset == NOWHERE else 0
                faults += _broken(run, there)
        verdict.faults += [f"partition {partition}: {fault}" for fault in faults[:_SHOWN]]
        if len(faults) > _SHOWN:
            verdict.faults.append(f"partition {partition}: and {len(faults) - _SHOWN} more")
    return verdict


def _disorder(stored: list[Run]) -> list[str]:
    """Return where numbers do not grow with the offsets: duplicates, and records out of order."""
    faults = []
    highest = position = -1
    for run in stored:
        if run.offset <= position:
            faults.append(f"offset {run.offset} was read after {position}")
        if run.number <= highest:
            faults.append(
                f"{run.count} record(s) from number {run.number} at offset {run.offset} follow number {highest}: "
                f"duplicates, or out of order"
            )
        highest = max(highest, run.number + run.count - 1)
        position = run.offset + run.count - 1
    return faults


def _foreign(promised: list[Run], stored: list[Run]) -> list[str]:
    """Return the numbers that were never sent."""
    end = promised[-1].number + promised[-1].count if promised else 0
    return [f"number {run.number + run.count - 1} was never sent" for run in stored if run.number + run.count > end]


def _broken(run: Run, there: list[Run]) -> list[str]:
    """Return the faults of an acknowledged run, given its stored parts."""
    faults = []
    count = sum(part.count for part in there)
    if count < run.count:
        faults.append(f"{run.count - count} of {run.count} record(s) acknowledged from number {run.number} are LOST")
    if count > run.count:
        faults.append(f"{count - run.count} of {run.count} record(s) from number {run.number} are stored twice")
    if run.offset != NOWHERE:
        shift = run.offset - run.number
        faults += [
            f"number {part.number} was acknowledged at offset {part.number + shift}, but is stored at {part.offset}"
            for part in there
            if part.offset - part.number != shift
        ]
    return faults


def _overlaps(run: Run, stored: list[Run]) -> list[Run]:
    """Return the parts of the stored runs with numbers of `run`."""
    parts = []
    for other in stored:
        first = max(run.number, other.number)
        end = min(run.number + run.count, other.number + other.count)
        if first < end:
            parts.append(Run(first, other.offset + first - other.number, end - first))
    return parts
