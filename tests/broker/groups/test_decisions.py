"""Verdicts on requests of classic groups: every state, every kind of wrong name."""

from __future__ import annotations

import pytest

from aiokwire.broker.groups import classic_decisions as decisions
from aiokwire.broker.groups.classic_decisions import Rejoin
from aiokwire.broker.groups.classic_group import CONSUMER
from aiokwire.broker.groups.requests import Client, Committer, Join, Joined, Reply, Sync
from aiokwire.broker.groups.states import ClassicState
from aiokwire.error_codes import ErrorCode
from tests.broker.groups.test_classic import group, member

S = ClassicState


def join(name: str = "a", *, instance: str | None = None, protocols: tuple[str, ...] = ("range",)) -> Join:
    metadata = tuple((one, f"{name} {one}".encode()) for one in protocols)
    return Join("g", name, instance, Client("c", "/h"), CONSUMER, metadata, 100, 1000)


def sync(name: str = "a", *, generation: int = 5, protocol: str | None = "range", kind: str | None = CONSUMER) -> Sync:
    return Sync("g", name, None, generation, kind, protocol, {})


@pytest.mark.parametrize(
    ("name", "instance", "code"),
    [
        ("a", None, ErrorCode.NONE),
        ("a", "i", ErrorCode.NONE),
        ("b", "i", ErrorCode.FENCED_INSTANCE_ID),
        ("a", "j", ErrorCode.UNKNOWN_MEMBER_ID),
        ("c", None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", None, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_the_error_codes_of_requests_by_member(name: str, instance: str | None, code: ErrorCode) -> None:
    assert decisions.member_fault(group(member("a", instance="i"), member("b")), name, instance) is code


def test_a_session_timeout_has_bounds() -> None:
    assert decisions.timeout_fault(join(), 100, 100) is ErrorCode.NONE
    assert decisions.timeout_fault(join(), 101, 200) is ErrorCode.INVALID_SESSION_TIMEOUT
    assert decisions.timeout_fault(join(), 1, 99) is ErrorCode.INVALID_SESSION_TIMEOUT


def test_a_full_group_takes_only_its_own() -> None:
    full = group(member("a"), member("b"))
    assert decisions.has_room(full, "a", 2)
    assert not decisions.has_room(full, "", 2)
    assert decisions.has_room(full, "", 3)
    full.restore(S.PREPARING_REBALANCE)
    full.members["a"].joining = Reply[Joined]()
    assert decisions.has_room(full, "", 2), "b may not come back"
    full.members["b"].joining = Reply[Joined]()
    assert not decisions.has_room(full, "", 2)
    assert decisions.has_room(full, "b", 2)


def test_the_error_codes_of_joins() -> None:
    stable = group(member("a", instance="i"))
    assert decisions.join_fault(stable, join("")) is ErrorCode.NONE
    assert decisions.join_fault(stable, join("a", instance="i")) is ErrorCode.NONE
    assert decisions.join_fault(stable, join("x")) is ErrorCode.UNKNOWN_MEMBER_ID
    stable.pending["x"] = None
    assert decisions.join_fault(stable, join("x")) is ErrorCode.NONE
    assert decisions.join_fault(stable, join("", protocols=("other",))) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    stable.restore(S.DEAD)
    assert decisions.join_fault(stable, join("a")) is ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize(
    ("state", "name", "changed", "plan"),
    [
        (S.PREPARING_REBALANCE, "b", False, Rejoin.REBALANCE),
        (S.COMPLETING_REBALANCE, "a", False, Rejoin.REPEAT),
        (S.COMPLETING_REBALANCE, "b", True, Rejoin.REBALANCE),
        (S.STABLE, "a", False, Rejoin.REBALANCE),  # the leader
        (S.STABLE, "b", False, Rejoin.REPEAT),
        (S.STABLE, "b", True, Rejoin.REBALANCE),
        (S.DEAD, "b", False, Rejoin.UNKNOWN),
    ],
)
def test_the_outcome_of_a_rejoin(state: ClassicState, name: str, changed: bool, plan: Rejoin) -> None:
    made = group(member("a"), member("b"), state=state)
    asked = join(name, protocols=("range", "more") if changed else ("range",))
    assert decisions.plan_rejoin(made, made.members[name], asked) is plan


def test_the_error_codes_of_syncs() -> None:
    made = group(member("a"))
    assert decisions.sync_fault(made, sync()) is ErrorCode.NONE
    assert decisions.sync_fault(made, sync(protocol=None, kind=None)) is ErrorCode.NONE, "older than version 5"
    assert decisions.sync_fault(made, sync("x")) is ErrorCode.UNKNOWN_MEMBER_ID
    assert decisions.sync_fault(made, sync(generation=4)) is ErrorCode.ILLEGAL_GENERATION
    assert decisions.sync_fault(made, sync(protocol="other")) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert decisions.sync_fault(made, sync(kind="other")) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    for state, code in (
        (S.COMPLETING_REBALANCE, ErrorCode.NONE),
        (S.PREPARING_REBALANCE, ErrorCode.REBALANCE_IN_PROGRESS),
        (S.EMPTY, ErrorCode.UNKNOWN_MEMBER_ID),
        (S.DEAD, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ):
        made.restore(state)
        assert decisions.sync_fault(made, sync()) is code


def test_the_error_codes_of_a_heartbeat() -> None:
    made = group(member("a"))
    assert decisions.heartbeat_fault(made, "x", None, 5) is ErrorCode.UNKNOWN_MEMBER_ID
    assert decisions.heartbeat_fault(made, "a", None, 6) is ErrorCode.ILLEGAL_GENERATION
    for state, code in (
        (S.STABLE, ErrorCode.NONE),
        (S.COMPLETING_REBALANCE, ErrorCode.NONE),
        (S.PREPARING_REBALANCE, ErrorCode.REBALANCE_IN_PROGRESS),
        (S.EMPTY, ErrorCode.UNKNOWN_MEMBER_ID),
        (S.DEAD, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ):
        made.restore(state)
        assert decisions.heartbeat_fault(made, "a", None, 5) is code


def by(name: str = "a", epoch: int = 5, *, transactional: bool = False, instance: str | None = None) -> Committer:
    return Committer(name, instance, epoch, 8, transactional)


def test_the_error_codes_of_commits() -> None:
    made = group(member("a", instance="i"))
    assert decisions.commit_fault(made, by()) is ErrorCode.NONE
    assert decisions.commit_fault(made, by(epoch=4)) is ErrorCode.ILLEGAL_GENERATION
    assert decisions.commit_fault(made, by("x")) is ErrorCode.UNKNOWN_MEMBER_ID
    assert decisions.commit_fault(made, by("x", instance="i")) is ErrorCode.FENCED_INSTANCE_ID
    assert decisions.commit_fault(made, by("", -1)) is ErrorCode.UNKNOWN_MEMBER_ID, "past the members"
    assert decisions.commit_fault(made, by("", -1, transactional=True)) is ErrorCode.NONE, (
        "older producers name no member"
    )
    made.restore(S.PREPARING_REBALANCE)
    assert decisions.commit_fault(made, by()) is ErrorCode.NONE, "what was read before it gives its partitions up"
    made.restore(S.COMPLETING_REBALANCE)
    assert decisions.commit_fault(made, by()) is ErrorCode.REBALANCE_IN_PROGRESS
    assert decisions.commit_fault(made, by(transactional=True)) is ErrorCode.NONE
    made.restore(S.DEAD)
    assert decisions.commit_fault(made, by()) is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_any_client_may_commit_for_a_group_without_members() -> None:
    empty = group(state=S.EMPTY)
    assert decisions.commit_fault(empty, by("", -1)) is ErrorCode.NONE
    assert decisions.commit_fault(empty, by("a", 5)) is ErrorCode.UNKNOWN_MEMBER_ID
