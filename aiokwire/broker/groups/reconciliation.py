"""How a member of the consumer protocol gets from what it has to its target: give up first, then take what is free.

A plain function of the member, its target, and what others have. The steps are those of KIP-848.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from aiokwire.broker.groups.consumer_group import ConsumerMember, Part, Parts
from aiokwire.broker.groups.states import ReconciliationState


def reconcile(
    member: ConsumerMember,
    target: Parts,
    target_epoch: int,
    *,
    owned: Parts | None,
    is_taken: Callable[[Part], bool],
) -> ConsumerMember:
    """The next step of a member; itself where it has to wait.

    `owned` is what the member says that it has, None where it said nothing. `is_taken` tells what somebody has.
    """
    if member.state is ReconciliationState.STABLE and member.epoch == target_epoch:
        return member
    if member.state is ReconciliationState.UNREVOKED_PARTITIONS and _still_has(owned, member.revoking):
        return member
    kept = {part: epoch for part, epoch in member.assigned.items() if part in target}
    revoking = {part: epoch for part, epoch in member.assigned.items() if part not in target}
    if revoking and _still_has(owned, revoking):
        return dataclasses.replace(
            member, state=ReconciliationState.UNREVOKED_PARTITIONS, assigned=kept, revoking=revoking
        )
    wanted = [part for part in target if part not in kept]
    # What it gave up itself, just now, nobody else took yet.
    free = [part for part in wanted if part in member.revoking or not is_taken(part)]
    return dataclasses.replace(
        member,
        state=ReconciliationState.STABLE if len(free) == len(wanted) else ReconciliationState.UNRELEASED_PARTITIONS,
        epoch=target_epoch,
        previous_epoch=member.epoch if member.epoch != target_epoch else member.previous_epoch,
        assigned=kept | dict.fromkeys(sorted(free), target_epoch),
        revoking={},
    )


def _still_has(owned: Parts | None, given_up: Mapping[Part, int]) -> bool:
    """Whether a member has, for all that is known, something that it must give up."""
    return owned is None or any(part in given_up for part in owned)
