"""The records that members of a group received: losses, duplicates, disorder and pauses. No I/O.

A record is named by its partition and its number in it: 0, 1, 2, ... in the order of sending. The
feed is the only producer of the topic and uses no transactions, so the number equals the offset.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from integration.chaos.moment import Moment

_SHOWN = 20  # faults that are listed
_LONG_AGO = Moment(0.0)


@dataclass(slots=True)
class Pauses:
    """The longest pause of each partition while a record was available, in seconds."""

    stayed: list[float]  # between two records of the same member
    own: list[float]  # the same, minus the time that the process waited for a core
    late: list[float]  # delay of the same member behind the bystander, minus the time that processes waited for a core
    moved: list[float]  # between the last record of one member and the first of the next

    def longest(self, other: Pauses) -> Pauses:
        """Return the longest pauses of two phases."""
        return Pauses(
            [max(pair) for pair in zip(self.stayed, other.stayed, strict=True)],
            [max(pair) for pair in zip(self.own, other.own, strict=True)],
            [max(pair) for pair in zip(self.late, other.late, strict=True)],
            [max(pair) for pair in zip(self.moved, other.moved, strict=True)],
        )


class Resumed(NamedTuple):
    """The first record of a partition after the broker's return."""

    after: float  # seconds since the return
    waited: float  # seconds its member waited for a core since its last record, even before the return; 0 if it is new


class _Hole(NamedTuple):
    """Records that a member seems to have skipped when it started.

    Another member may have received them before and report them later: each process has its own
    pipe.
    """

    end: int  # the first number of the member
    at: float  # when the member received it
    fault: str


@dataclass(slots=True)
class _Partition:
    counts: bytearray = field(default_factory=bytearray)  # times that each number was received
    member: object = None  # the member that received the last record
    at: Moment = _LONG_AGO  # when it did
    since: float = 0.0  # when this member received its first record
    committed: int = 0  # the last committed offset that the broker reported
    committed_at: float = 0.0  # when the broker reported it
    seen: dict[int, Moment] = field(default_factory=dict)  # by the bystander, but by no member yet
    resumed: Resumed | None = None
    holes: list[_Hole] = field(default_factory=list)  # by number

    def fill(self, number: int, at: float) -> str | None:
        """Note a skipped number; return the fault if it was received later than its successors."""
        for hole in self.holes:
            if number < hole.end:
                if at <= hole.at:
                    return None
                self.holes.remove(hole)
                return hole.fault
        return None

    @property
    def open_holes(self) -> list[str]:
        """The faults of holes with records that no member received."""
        begins = [0, *(hole.end for hole in self.holes)]
        return [
            hole.fault for begin, hole in zip(begins, self.holes, strict=False) if 0 in self.counts[begin : hole.end]
        ]


class Account:
    """Receives every record of every member; all moments are those of one process."""

    def __init__(self, partitions: int) -> None:
        self._partitions = [_Partition() for _ in range(partitions)]
        self._last: dict[tuple[object, int], int] = {}  # the last number of a member and partition
        self._faults: list[str] = []
        self._returned = math.inf  # when the broker returned
        self.pauses = self._no_pauses()
        self.records = 0

    # --- reports ------------------------------------------------------------------------------------------------------

    def assigned(self, member: object, partitions: Collection[int]) -> None:
        """A member starts to read these partitions at the committed offsets."""
        for partition in partitions:
            self._last.pop((member, partition), None)

    def received(self, member: object, partition: int, number: int, *, sent_at: Moment, now: Moment) -> None:
        """A member received a record that was sent at `sent_at`."""
        place = self._partitions[partition]
        self._check_order(member, partition, number, now.at)
        if number < len(place.counts) and not place.counts[number]:
            fault = place.fill(number, now.at)
            self._faults += [fault] if fault else []
        if number >= len(place.counts):
            place.counts.extend(bytes(number + 1 - len(place.counts)))
        if place.counts[number] and number < place.committed and now.at > place.committed_at:
            self._faults.append(
                f"{member}, partition {partition}: {number} was received again, after {place.committed} was committed"
            )
        place.counts[number] = min(255, place.counts[number] + 1)
        if place.member is not None:
            self._measure(partition, max(place.at, sent_at), now, moved=place.member is not member)
        seen = place.seen.pop(number, None)
        if place.member is not member:
            place.since = now.at
        elif seen is not None and seen.at > place.since:
            late = now.at - max(seen.at, sent_at.at) - (now.starved - sent_at.starved)
            self.pauses.late[partition] = max(self.pauses.late[partition], late)
        if place.resumed is None and now.at > self._returned:
            after = now.at - self._returned
            waited = now.starved - place.at.starved if place.member is member else 0.0
            place.resumed = Resumed(after, waited)
        place.member, place.at = member, now
        self.records += 1

    def seen(self, partition: int, number: int, *, now: Moment) -> None:
        """The bystander, a consumer without a group, received a record."""
        place = self._partitions[partition]
        if number >= len(place.counts):
            place.seen[number] = now

    def committed(self, partition: int, offset: int, *, now: Moment) -> None:
        """The broker reported a committed offset: earlier records must not be received again."""
        place = self._partitions[partition]
        if offset > place.committed:
            place.committed, place.committed_at = offset, now.at

    def _measure(self, partition: int, began: Moment, now: Moment, *, moved: bool) -> None:
        pause, pauses = now.at - began.at, self.pauses
        if moved:
            pauses.moved[partition] = max(pauses.moved[partition], pause)
        else:
            pauses.stayed[partition] = max(pauses.stayed[partition], pause)
            pauses.own[partition] = max(pauses.own[partition], pause - (now.starved - began.starved))

    def _check_order(self, member: object, partition: int, number: int, at: float) -> None:
        last = self._last.get((member, partition))
        self._last[member, partition] = number
        place = self._partitions[partition]
        if last is None and number > len(place.counts):
            fault = (
                f"{member}, partition {partition}: starts at number {number}, "
                f"but only {len(place.counts)} were received"
            )
            place.holes.append(_Hole(number, at, fault))
        elif last is not None and number != last + 1:
            self._faults.append(f"{member}, partition {partition}: number {number} follows {last}")

    # --- results ------------------------------------------------------------------------------------------------------

    def new_phase(self) -> Pauses:
        """Return the pauses of the last phase and start a new one."""
        pauses, self.pauses = self.pauses, self._no_pauses()
        return pauses

    def end(self, partition: int) -> int:
        """Return the number after the last received one."""
        return len(self._partitions[partition].counts)

    def broker_returned(self, at: float) -> None:
        """Note the return of the broker, which `resumed` refers to."""
        self._returned = at
        for place in self._partitions:
            place.resumed = None

    def resumed(self, partitions: Collection[int] | None = None) -> list[Resumed]:
        """Return the first record after the return, of each chosen partition that has one."""
        chosen = range(len(self._partitions)) if partitions is None else partitions
        found = (self._partitions[number].resumed for number in chosen)
        return [each for each in found if each is not None]

    def has_all(self, sent: int) -> bool:
        """Whether the first `sent` records of each partition were reached."""
        return all(len(place.counts) >= sent for place in self._partitions)

    def lost(self, sent: int) -> int:
        """Count the records, of `sent` in each partition, that no member received."""
        return sum(sent - len(place.counts) + place.counts.count(0) for place in self._partitions)

    @property
    def duplicates(self) -> int:
        """The number of records that were received more than once."""
        return sum(len(place.counts) - place.counts.count(0) - place.counts.count(1) for place in self._partitions)

    @property
    def faults(self) -> list[str]:
        """Gaps, disorder, and records received after they were committed."""
        found = self._faults + [fault for place in self._partitions for fault in place.open_holes]
        more = len(found) - _SHOWN
        return found[:_SHOWN] + ([f"and {more} more"] if more > 0 else [])

    def _no_pauses(self) -> Pauses:
        nothing = [0.0] * len(self._partitions)
        return Pauses(nothing, nothing.copy(), nothing.copy(), nothing.copy())
