"""Targets of requests: equality and text."""

from __future__ import annotations

from aiokwire.cluster import ANY, CONTROLLER, Controller, Coordinator, CoordinatorKind, Leader, Node
from aiokwire.cluster.targets import AnyNode
from aiokwire.types import TopicPartition


def test_targets_are_equal_only_if_they_name_the_same_broker() -> None:
    group, transaction = CoordinatorKind.GROUP, CoordinatorKind.TRANSACTION
    leader = Leader(TopicPartition("t", 0))
    targets = [ANY, CONTROLLER, Node(1), Node(2), leader, Coordinator(group, "k"), Coordinator(transaction, "k")]
    assert len(set(targets)) == len(targets)
    assert (AnyNode(), Controller()) == (ANY, CONTROLLER)


def test_the_text_of_a_target_names_its_broker() -> None:
    assert [str(target) for target in (ANY, CONTROLLER, Node(7))] == ["any broker", "the controller", "node 7"]
