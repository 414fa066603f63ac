"""Reconciles a member of the consumer protocol with its target: first it revokes, then it takes free partitions.

A pure function of the member, its target, and the partitions of others. The steps are those of KIP-848.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from aiokwire.broker.groups.consumer_group import ConsumerMember, Part, Parts
from aiokwire.broker.groups.states import ReconciliationState


def reconcile(
    member: ConsumerMember, target: Parts, target_epoch: int, *, owned: Parts | None, is_taken: Callable[[Part], bool]
) -> ConsumerMember:
    """Return the member after its next step, or the same member if it has to wait.

    `owned` are the partitions that the member reports, None if it reports none. `is_taken`: another member has it.
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
    # No other member has taken the partitions that it has just revoked.
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
    """Return whether a member may still have partitions that it must revoke."""
    return owned is None or any(part in given_up for part in owned)
