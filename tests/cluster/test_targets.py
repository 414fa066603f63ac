"""Whom a request is for: each target is itself only."""

from __future__ import annotations

from aiokwire.cluster import ANY, CONTROLLER, AnyNode, Controller, Coordinator, CoordinatorKind, Leader, Node
from aiokwire.types import TopicPartition


def test_targets_are_equal_exactly_when_they_mean_the_same() -> None:
    group, transaction = CoordinatorKind.GROUP, CoordinatorKind.TRANSACTION
    leader = Leader(TopicPartition("t", 0))
    targets = [ANY, CONTROLLER, Node(1), Node(2), leader, Coordinator(group, "k"), Coordinator(transaction, "k")]
    assert len(set(targets)) == len(targets)
    assert (AnyNode(), Controller()) == (ANY, CONTROLLER)


def test_targets_say_in_messages_whom_they_mean() -> None:
    assert [str(target) for target in (ANY, CONTROLLER, Node(7))] == ["any broker", "the controller", "node 7"]
