"""The state of a classic group that follows from its members."""

from __future__ import annotations

import pytest

from aiokwire.broker.groups.classic_group import CONSUMER, ClassicGroup, ClassicMember
from aiokwire.broker.groups.requests import Client, Joined, Reply, Synced
from aiokwire.broker.groups.states import TRANSITIONS, ClassicEvent, ClassicState
from aiokwire.error_codes import ErrorCode
from aiokwire.machine import InvalidTransition
from aiokwire.protocol import encode_embedded
from aiokwire.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription


def member(name: str, *protocols: str, instance: str | None = None, rebalance_ms: int = 1000) -> ClassicMember:
    return ClassicMember(
        name,
        instance,
        Client("c", "/h"),
        tuple((one, f"{name} {one}".encode()) for one in protocols or ("range",)),
        session_timeout_ms=100,
        rebalance_timeout_ms=rebalance_ms,
    )


def group(*members: ClassicMember, state: ClassicState = ClassicState.STABLE) -> ClassicGroup:
    made = ClassicGroup("g")
    for one in members:
        made.add(one, CONSUMER)
    made.restore(state)
    made.generation = 5
    made.protocol = "range" if members else None
    return made


def test_the_table_leads_to_every_state_and_from_all_but_the_last() -> None:
    assert set(TRANSITIONS.values()) == set(ClassicState)
    assert {source for source, _ in TRANSITIONS} == set(ClassicState) - {ClassicState.DEAD}


def test_a_transition_outside_of_the_table_is_refused() -> None:
    with pytest.raises(InvalidTransition):
        group(member("a")).move(ClassicEvent.SYNCED, 0)


def test_the_protocol_is_the_most_preferred_of_the_common_ones() -> None:
    made = group(member("a", "x", "y", "z"), member("b", "y", "z", "x"), member("c", "z", "y"))
    assert made.select_protocol() == "y"
    assert made.supports(CONSUMER, ["z"])
    assert not made.supports(CONSUMER, ["x"]), "one of them has no x"
    assert not made.supports("connect", ["y"])


def test_a_group_without_members_accepts_any_protocols_but_none() -> None:
    made = ClassicGroup("g")
    assert made.supports("connect", ["a"])
    assert not made.supports("", ["a"])
    assert not made.supports("connect", [])


def test_the_first_member_leads_until_it_leaves() -> None:
    made = group(member("a"), member("b"))
    assert made.leader == "a"
    made.remove("a")
    assert made.leader == "b"
    made.remove("b")
    assert made.leader is None


def test_a_leader_that_did_not_join_is_replaced_by_one_that_did() -> None:
    made = group(member("a"), member("b"))
    assert not made.elect(), "no member joined"
    made.members["b"].joining = Reply[Joined]()
    assert made.elect()
    assert made.leader == "b"


def test_a_member_that_leaves_gets_its_pending_response() -> None:
    made = group(member("a"))
    joining, syncing = Reply[Joined](), Reply[Synced]()
    made.members["a"].joining, made.members["a"].syncing = joining, syncing
    made.remove("a")
    assert joining.get(lambda answer: answer.code) is ErrorCode.UNKNOWN_MEMBER_ID
    assert syncing.get(lambda answer: answer.code) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_keeps_its_place_under_a_new_id() -> None:
    made = group(member("a", instance="i"), member("b"))
    made.unsynced = {"a": None}
    joining = Reply[Joined]()
    made.members["a"].joining = joining
    made.replace_static("i", "c")
    assert joining.get(lambda answer: answer.code) is ErrorCode.FENCED_INSTANCE_ID
    assert list(made.members) == ["c", "b"]
    assert (made.leader, made.static, made.unsynced) == ("c", {"i": "c"}, {"c": None})


def test_the_rebalance_timeout_is_the_longest_of_the_members() -> None:
    assert group(member("a", rebalance_ms=50), member("b", rebalance_ms=70)).rebalance_timeout_ms == 70
    assert group().rebalance_timeout_ms == 0


def test_the_topics_of_consumers_are_known_and_those_of_others_are_not() -> None:
    a, b = member("a"), member("b")
    for one, topics in ((a, ["t", "u"]), (b, ["u", "v"])):
        one.protocols = (("range", encode_embedded(ConsumerProtocolSubscription(topics=topics), 1)),)
    made = group(a, b)
    assert made.subscribed_topics() == {"t", "u", "v"}
    b.protocols = (("range", b"?"),)
    assert made.subscribed_topics() is None
    made.protocol_type = "connect"
    assert made.subscribed_topics() is None
