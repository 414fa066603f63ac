"""Which assignors a member offers to its group, and what becomes of its partitions under the one that is chosen.
No I/O.

A list that the user gave is offered as it is, and followed as Java does: partitions are kept during a join only if
every assignor of the list is cooperative.

`partition_assignment_strategy="auto"` offers cooperative and eager assignors together, so that members of other clients
can join at any time, and still keeps partitions during a join. The coordinator may then choose an eager assignor in a
generation whose members still own partitions, which must not be assigned to others. Hence:

- `TeamStickyAssignor` has a name that only these members offer. Chosen, it proves that they are alone in the group.
- After such a generation a member that owns partitions offers everything, and says under the eager names that it owns
  some (`OWNS`). When an eager assignor is chosen then, the leader, which is one of them, assigns nothing to anybody:
  the owners revoke, and join again with nothing. A member that does not know the leader drops its partitions at once.
- After a generation of any other cooperative assignor a member that owns partitions offers cooperative ones alone.
  Where the group cannot use these any more, the join is refused: the member revokes everything and offers all again.
- After a generation of an eager assignor everything is revoked before the join.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Final

from aiokwire.group.assignors import (
    Assignor,
    CooperativeStickyAssignor,
    RangeAssignor,
    RoundRobinAssignor,
)
from aiokwire.group.subscription_format import MemberSubscription, encode_subscription
from aiokwire.types import TopicPartition

logger = logging.getLogger(__name__)

# The user data of a member that owns partitions, for eager assignors that have none of their own.
OWNS: Final = b"aiokwire: owns partitions"


class TeamStickyAssignor(CooperativeStickyAssignor):
    """As its parent. Its name is offered only with "auto", so all members act by this module when it is chosen."""

    name = "aiokwire-cooperative-sticky"


def auto_assignors() -> tuple[Assignor, ...]:
    """What "auto" offers, the preferred first."""
    return (TeamStickyAssignor(), CooperativeStickyAssignor(), RangeAssignor(), RoundRobinAssignor())


class Strategy:
    """The assignors of one member. `is_auto`: they are those of `auto_assignors`."""

    def __init__(self, assignors: Sequence[Assignor], *, is_auto: bool = False) -> None:
        self.assignors = tuple(assignors)
        self.is_auto = is_auto
        self._is_cooperative = all(assignor.cooperative for assignor in assignors)
        self._eager = ""  # the assignor that "auto" gave in to

    def is_cooperative(self, chosen: Assignor | None) -> bool:
        """Whether a member keeps its partitions when it leaves a generation with this assignor for the next join."""
        if self.is_auto:
            return chosen is None or chosen.cooperative
        return self._is_cooperative

    def offered(self, chosen: Assignor | None, *, owns: bool) -> tuple[Assignor, ...]:
        """What to offer in a join, after a generation with the assignor `chosen`."""
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
        """The assignors' names, each with the subscription that the leader is to see if it is chosen."""
        encoded: dict[bytes, bytes] = {}  # by user data: most assignors have the same
        protocols: list[tuple[str, bytes]] = []
        for assignor in offered:
            yields = self.is_auto and owned and not assignor.cooperative
            data = OWNS if yields else assignor.user_data(topics)
            if data not in encoded:
                encoded[data] = encode_subscription(topics, data, owned, generation, rack_id)
            protocols.append((assignor.name, encoded[data]))
        return protocols

    def must_yield(self, chosen: Assignor, members: Iterable[MemberSubscription]) -> bool:
        """Whether the leader must assign nothing now: some members still own partitions, and the others would not know
        that."""
        return self.is_auto and not chosen.cooperative and any(member.user_data == OWNS for member in members)

    def should_offer_more(self, chosen: Assignor, offered: Sequence[Assignor]) -> bool:
        """Whether the members are alone again, and others could not join them by what this one offered."""
        return isinstance(chosen, TeamStickyAssignor) and len(offered) < len(self.assignors)

    def on_assignment(self, chosen: Assignor, partitions: Sequence[TopicPartition], generation: int) -> None:
        """Partitions were assigned to this member: notify the assignors that remember it."""
        for assignor in self.assignors if self.is_auto else (chosen,):
            assignor.on_assignment(partitions, generation)

    def warn_of(self, chosen: Assignor, who: str) -> None:
        """Warn once each time that members of other clients make the group eager; `who` begins the message."""
        before, self._eager = self._eager, "" if chosen.cooperative else chosen.name
        if self.is_auto and self._eager not in ("", before):
            logger.warning(
                "%s: not all members offer cooperative-sticky: using %r; every rebalance stops all partitions until it "
                "ends (set cooperative-sticky in the other clients to avoid it)",
                who,
                self._eager,
            )
