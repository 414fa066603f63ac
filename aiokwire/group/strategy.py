"""The assignors that a member offers to its group, and which partitions it keeps under the chosen
one. No I/O.

A list of the user is offered as it is, with Java's rule: partitions are kept during a join only if
every assignor of the list is cooperative.

`partition_assignment_strategy="auto"` offers cooperative and eager assignors together, so that
members of other clients can join at any time, and still keeps partitions during a join. The
coordinator may then choose an eager assignor in a generation whose members still own partitions,
which must not be assigned to others. Hence:

- `TeamStickyAssignor` has a name that only these members offer. If it is chosen, the group has no
  other members.
- After such a generation a member that owns partitions offers all assignors, with the user data
  `OWNS` for the eager ones. If an eager assignor is chosen then, the leader, which is one of these
  members, assigns no partitions: the owners revoke theirs and join again. A member that does not
  know the leader drops its partitions at once.
- After a generation of another cooperative assignor a member that owns partitions offers only
  cooperative assignors. If the group cannot use these any longer, it refuses the join: the member
  revokes all partitions and offers all again.
- After a generation of an eager assignor all partitions are revoked before the join.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from aiokwire.group.assignors import (
    Assignor,
    CooperativeStickyAssignor,
    RangeAssignor,
    RoundRobinAssignor,
)
from aiokwire.group.subscription_format import MemberSubscription, encode_subscription
from aiokwire.log_fields import FieldLogger, get_logger
from aiokwire.types import TopicPartition

logger: FieldLogger = get_logger(__name__)

# The user data of a member that owns partitions, for eager assignors, which have no user data.
OWNS: Final = b"aiokwire: owns partitions"


class TeamStickyAssignor(CooperativeStickyAssignor):
    """The parent under a name that only "auto" offers: if chosen, all members use this module."""

    name = "aiokwire-cooperative-sticky"


def auto_assignors() -> tuple[Assignor, ...]:
    """Return the assignors of "auto", the preferred first."""
    return (TeamStickyAssignor(), CooperativeStickyAssignor(), RangeAssignor(), RoundRobinAssignor())


class Strategy:
    """The assignors of one member. `is_auto`: those of `auto_assignors`."""

    def __init__(self, assignors: Sequence[Assignor], *, is_auto: bool = False) -> None:
        self.assignors: tuple[Assignor, ...] = tuple(assignors)
        self.is_auto = is_auto
        self._is_cooperative = all(assignor.cooperative for assignor in assignors)
        self._eager = ""  # the eager assignor in use despite "auto"

    def is_cooperative(self, chosen: Assignor | None) -> bool:
        """Return whether a member keeps its partitions in the join after a generation."""
        if self.is_auto:
            return chosen is None or chosen.cooperative
        return self._is_cooperative

    def offered(self, chosen: Assignor | None, *, owns: bool) -> tuple[Assignor, ...]:
        """Return the assignors to offer after a generation with the assignor `chosen`."""
        if self.is_auto and owns and not isinstance(chosen, TeamStickyAssignor):
            return tuple(assignor for assignor in self.assignors if assignor.cooperative)
        return self.assignors

    def encode(
        self,
        offered: Iterable[Assignor],
        topics: frozenset[str],
        owned: frozenset[TopicPartition],
        generation: int,
        rack_id: str | None,
    ) -> list[tuple[str, bytes]]:
        """Return the assignors' names, each with its subscription for the leader."""
        encoded: dict[bytes, bytes] = {}  # by user data, which most assignors share
        protocols: list[tuple[str, bytes]] = []
        for assignor in offered:
            yields = self.is_auto and owned and not assignor.cooperative
            data = OWNS if yields else assignor.user_data(topics)
            if data not in encoded:
                encoded[data] = encode_subscription(topics, data, owned, generation, rack_id)
            protocols.append((assignor.name, encoded[data]))
        return protocols

    def must_yield(self, chosen: Assignor, members: Iterable[MemberSubscription]) -> bool:
        """Return whether the leader must assign no partitions now: some members own partitions that
        the assignor does not know of."""
        return self.is_auto and not chosen.cooperative and any(member.user_data == OWNS for member in members)

    def should_offer_more(self, chosen: Assignor, offered: Sequence[Assignor]) -> bool:
        """Return whether all members are ours again, but not all assignors were offered."""
        return isinstance(chosen, TeamStickyAssignor) and len(offered) < len(self.assignors)

    def on_assignment(self, chosen: Assignor, partitions: Sequence[TopicPartition], generation: int) -> None:
        """Pass the assignment of this member to the assignors that keep it."""
        for assignor in self.assignors if self.is_auto else (chosen,):
            assignor.on_assignment(partitions, generation)

    def warn_of(self, chosen: Assignor, who: str) -> None:
        """Warn when other clients make the group eager. `who`: the start of the message."""
        before, self._eager = self._eager, "" if chosen.cooperative else chosen.name
        if self.is_auto and self._eager not in ("", before):
            logger.warning(
                "%s: not all members offer cooperative-sticky: using %r; every rebalance stops all partitions until it "
                "ends (set cooperative-sticky in the other clients to avoid that)",
                who,
                self._eager,
            )
