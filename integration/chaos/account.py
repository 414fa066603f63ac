"""What members of a group were handed over, by whom and when: losses, doubles, disorder and pauses. No I/O.

A record is named by its partition and its number there: 0, 1, 2, ... in the order in which the records were sent.
Nobody else writes to the topic, and no transaction, so the number is its offset, too.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from integration.chaos.moment import Moment

_SHOWN = 20  # faults that are told
_LONG_AGO = Moment(0.0)


@dataclass(slots=True)
class Pauses:
    """The longest pause of each partition, in seconds: while a record waited, and none was handed over."""

    stayed: list[float]  # between two records that one member was handed
    own: list[float]  # the same, less the time that the process waited for a core
    late: list[float]  # of a member that stayed, after the bystander; less the time that processes waited for a core
    moved: list[float]  # between the last record of one member and the first of the next

    def longest(self, other: Pauses) -> Pauses:
        """Of two phases."""
        return Pauses(
            [max(pair) for pair in zip(self.stayed, other.stayed, strict=True)],
            [max(pair) for pair in zip(self.own, other.own, strict=True)],
            [max(pair) for pair in zip(self.late, other.late, strict=True)],
            [max(pair) for pair in zip(self.moved, other.moved, strict=True)],
        )


class Resumed(NamedTuple):
    """The first record of a partition after the broker's return."""

    after: float  # seconds since then
    waited: float  # for a core: its member since its last record, so also before the return; 0 when that was another's


class _Hole(NamedTuple):
    """Records that a member left out when it began, as far as the account has been told: what another was handed
    before may be told later, since each process has a pipe of its own."""

    end: int  # the number that it began with
    at: float  # when
    fault: str


@dataclass(slots=True)
class _Partition:
    counts: bytearray = field(default_factory=bytearray)  # how often each number was handed over
    member: object = None  # who was handed the last record
    at: Moment = _LONG_AGO  # when
    since: float = 0.0  # when this member was handed its first
    committed: int = 0  # the group's offset, as the broker told it last
    told_at: float = 0.0  # when it told that
    seen: dict[int, Moment] = field(default_factory=dict)  # by the bystander, and by no member yet
    resumed: Resumed | None = None
    holes: list[_Hole] = field(default_factory=list)  # by number

    def fill(self, number: int, at: float) -> str | None:
        """A number that was left out came after all; returns the fault if it came later than what is behind it."""
        for hole in self.holes:
            if number < hole.end:
                if at <= hole.at:
                    return None
                self.holes.remove(hole)
                return hole.fault
        return None

    @property
    def open_holes(self) -> list[str]:
        """The faults of those that nobody filled."""
        begins = [0, *(hole.end for hole in self.holes)]
        return [
            hole.fault for begin, hole in zip(begins, self.holes, strict=False) if 0 in self.counts[begin : hole.end]
        ]


class Account:
    """Told of every record; moments are those of one process."""

    def __init__(self, partitions: int) -> None:
        self._partitions = [_Partition() for _ in range(partitions)]
        self._last: dict[tuple[object, int], int] = {}  # the number that a member was handed last of a partition
        self._faults: list[str] = []
        self._returned = math.inf  # when the broker did
        self.pauses = self._no_pauses()
        self.records = 0

    # --- told by members ----------------------------------------------------------------------------------------------

    def assigned(self, member: object, partitions: Collection[int]) -> None:
        """A member begins with these, where the group has committed."""
        for partition in partitions:
            self._last.pop((member, partition), None)

    def handed_over(self, member: object, partition: int, number: int, *, sent_at: Moment, now: Moment) -> None:
        """One record, that had been sent at `sent_at`."""
        place = self._partitions[partition]
        self._check_order(member, partition, number, now.at)
        if number < len(place.counts) and not place.counts[number]:
            fault = place.fill(number, now.at)
            self._faults += [fault] if fault else []
        if number >= len(place.counts):
            place.counts.extend(bytes(number + 1 - len(place.counts)))
        if place.counts[number] and number < place.committed and now.at > place.told_at:
            self._faults.append(
                f"{member}, partition {partition}: {number} came again, {place.committed} was committed"
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
        """By the bystander: a reader without a group, which nothing of a group's doing holds up."""
        place = self._partitions[partition]
        if number >= len(place.counts):
            place.seen[number] = now

    def committed(self, partition: int, offset: int, *, now: Moment) -> None:
        """The broker says so: from now on, nobody is to be handed an earlier record once more."""
        place = self._partitions[partition]
        if offset > place.committed:
            place.committed, place.told_at = offset, now.at

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
            fault = f"{member}, partition {partition}: begins with number {number}, of {len(place.counts)} handed over"
            place.holes.append(_Hole(number, at, fault))
        elif last is not None and number != last + 1:
            self._faults.append(f"{member}, partition {partition}: number {number} came after {last}")

    # --- asked --------------------------------------------------------------------------------------------------------

    def new_phase(self) -> Pauses:
        """The pauses since the last phase began; they are counted anew."""
        pauses, self.pauses = self.pauses, self._no_pauses()
        return pauses

    def end(self, partition: int) -> int:
        """The number after the last that was handed over."""
        return len(self._partitions[partition].counts)

    def broker_returned(self, at: float) -> None:
        """From here on `resumed` counts."""
        self._returned = at
        for place in self._partitions:
            place.resumed = None

    def resumed(self, partitions: Collection[int] | None = None) -> list[Resumed]:
        """Of each partition, or of each of these, that goes on."""
        chosen = range(len(self._partitions)) if partitions is None else partitions
        found = (self._partitions[number].resumed for number in chosen)
        return [each for each in found if each is not None]

    def has_all(self, sent: int) -> bool:
        """Whether of each partition so many records were handed over."""
        return all(len(place.counts) >= sent for place in self._partitions)

    def lost(self, sent: int) -> int:
        """How many of the `sent` records of each partition nobody was handed."""
        return sum(sent - len(place.counts) + place.counts.count(0) for place in self._partitions)

    @property
    def doubled(self) -> int:
        """How many records were handed over more than once."""
        return sum(len(place.counts) - place.counts.count(0) - place.counts.count(1) for place in self._partitions)

    @property
    def faults(self) -> list[str]:
        """Records out of order, and gaps."""
        found = self._faults + [fault for place in self._partitions for fault in place.open_holes]
        more = len(found) - _SHOWN
        return found[:_SHOWN] + ([f"and {more} more"] if more > 0 else [])

    def _no_pauses(self) -> Pauses:
        nothing = [0.0] * len(self._partitions)
        return Pauses(nothing, nothing.copy(), nothing.copy(), nothing.copy())
