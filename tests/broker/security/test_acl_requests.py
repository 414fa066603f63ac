"""CreateAcls, DescribeAcls, DeleteAcls."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from aiokwire.broker.dispatch import CloseConnection
from aiokwire.broker.security import AclOperation, PatternType, PermissionType, ResourceType
from aiokwire.broker.state import BrokerState
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import create_acls, delete_acls, describe_acls
from tests.broker.security.acting import ADMIN, ALICE, ask, opened

LITERAL, PREFIXED, MATCH = PatternType.LITERAL, PatternType.PREFIXED, PatternType.MATCH
READ, ANY = AclOperation.READ, 1


@pytest.fixture
def state() -> Iterator[BrokerState]:
    running = opened()
    yield running
    running.close()


def creation(name: str, *, pattern: int = LITERAL, operation: int = READ, kind: int = ResourceType.TOPIC,
             principal: str = "User:alice") -> create_acls.AclCreation:  # fmt: skip
    return create_acls.AclCreation(
        resource_type=kind,
        resource_name=name,
        resource_pattern_type=pattern,
        principal=principal,
        host="*",
        operation=operation,
        permission_type=PermissionType.ALLOW,
    )


def creating(*creations: create_acls.AclCreation) -> create_acls.CreateAclsRequest:
    return create_acls.CreateAclsRequest(creations=list(creations))


def describing(name: str | None = None, *, pattern: int = ANY, kind: int = ANY) -> describe_acls.DescribeAclsRequest:
    return describe_acls.DescribeAclsRequest(
        resource_type_filter=kind,
        resource_name_filter=name,
        pattern_type_filter=pattern,
        principal_filter=None,
        host_filter=None,
        operation=ANY,
        permission_type=ANY,
    )


def deleting(*names: str | None, pattern: int = ANY, kind: int = ANY) -> delete_acls.DeleteAclsRequest:
    return delete_acls.DeleteAclsRequest(
        filters=[
            delete_acls.DeleteAclsFilter(
                resource_type_filter=kind,
                resource_name_filter=name,
                pattern_type_filter=pattern,
                principal_filter=None,
                host_filter=None,
                operation=ANY,
                permission_type=ANY,
            )
            for name in names
        ]
    )


def named(response: describe_acls.DescribeAclsResponse) -> list[tuple[str, int, int]]:
    return [(one.resource_name, one.pattern_type, len(one.acls)) for one in response.resources]


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_created_acls_are_described_until_they_are_deleted(state: BrokerState, version: int) -> None:
    given = [creation("t"), creation("t", operation=AclOperation.WRITE), creation("te", pattern=PREFIXED)]
    created = await ask(state, creating(*given), version, ADMIN)
    assert [(one.error_code, one.error_message) for one in created.results] == [(0, None)] * 3
    assert named(await ask(state, describing(), version, ADMIN)) == [("t", LITERAL, 2), ("te", PREFIXED, 1)]

    deleted = await ask(state, deleting("t", "te", "nothing"), version, ADMIN)
    assert [len(one.matching_acls) for one in deleted.filter_results] == [2, 1, 0]
    matching = deleted.filter_results[1].matching_acls[0]
    assert (matching.resource_name, matching.pattern_type, matching.principal) == ("te", PREFIXED, "User:alice")
    assert named(await ask(state, describing(), version, ADMIN)) == []


async def test_version_0_knows_literal_patterns_only(state: BrokerState) -> None:
    await ask(state, creating(creation("t")), 0, ADMIN)
    await ask(state, creating(creation("t", pattern=PREFIXED)), 1, ADMIN)
    assert named(await ask(state, describing(pattern=LITERAL), 0, ADMIN)) == [("t", LITERAL, 1)]


async def test_match_finds_every_acl_about_a_resource(state: BrokerState) -> None:
    given = [creation("tea"), creation("te", pattern=PREFIXED), creation("*"), creation("teapot"), creation("x")]
    await ask(state, creating(*given), 3, ADMIN)
    found = await ask(state, describing("tea", pattern=MATCH, kind=ResourceType.TOPIC), 3, ADMIN)
    assert {one.resource_name for one in found.resources} == {"tea", "te", "*"}


async def test_an_acl_is_created_once(state: BrokerState) -> None:
    for _ in range(2):
        created = await ask(state, creating(creation("t"), creation("t")), 3, ADMIN)
        assert [one.error_code for one in created.results] == [0, 0]
    assert named(await ask(state, describing(), 3, ADMIN)) == [("t", LITERAL, 1)]


async def test_overlapping_filters_both_name_what_they_delete(state: BrokerState) -> None:
    await ask(state, creating(creation("t")), 3, ADMIN)
    deleted = await ask(state, deleting("t", None), 3, ADMIN)
    assert [len(one.matching_acls) for one in deleted.filter_results] == [1, 1]


async def test_a_bad_acl_does_not_stop_the_good_ones(state: BrokerState) -> None:
    given = [creation(""), creation("t"), creation("x", kind=ResourceType.CLUSTER), creation("t", principal="alice")]
    created = await ask(state, creating(*given), 3, ADMIN)
    bad = ErrorCode.INVALID_REQUEST
    assert [one.error_code for one in created.results] == [bad, 0, bad, bad]
    assert named(await ask(state, describing(), 3, ADMIN)) == [("t", LITERAL, 1)]


async def test_too_many_acls_at_once_are_refused(state: BrokerState) -> None:
    created = await ask(state, creating(*[creation(f"t{index}") for index in range(10_001)]), 3, ADMIN)
    assert {one.error_code for one in created.results} == {ErrorCode.POLICY_VIOLATION}
    assert state.authorizer is not None
    assert named(await ask(state, describing(), 3, ADMIN)) == []


async def test_unknown_codes_are_refused_as_in_kafka(state: BrokerState) -> None:
    deleted = await ask(state, deleting("t", kind=99), 3, ADMIN)
    assert deleted.filter_results[0].error_code == ErrorCode.INVALID_REQUEST
    assert named(await ask(state, describing(kind=99), 3, ADMIN)) == []
    for request in (creating(creation("t", operation=0)), describing(kind=0), deleting("t", kind=0)):
        with pytest.raises(CloseConnection, match="unknown"):
            await ask(state, request, 3, ADMIN)


async def test_others_may_neither_read_nor_change_acls(state: BrokerState) -> None:
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert (await ask(state, describing(), 3, ALICE)).error_code == code
    assert [one.error_code for one in (await ask(state, creating(creation("t")), 3, ALICE)).results] == [code]
    assert [one.error_code for one in (await ask(state, deleting("t"), 3, ALICE)).filter_results] == [code]


async def test_without_an_authorizer_there_are_no_acls() -> None:
    state = opened(authorizer_class_name="")
    code = ErrorCode.SECURITY_DISABLED
    described = await ask(state, describing(), 3, ALICE)
    assert (described.error_code, described.error_message) == (code, "No Authorizer is configured on the broker")
    created = await ask(state, creating(creation("t")), 3, ALICE)
    assert [(one.error_code, one.error_message) for one in created.results] == [(code, "No Authorizer is configured.")]
    assert [one.error_code for one in (await ask(state, deleting("t"), 3, ALICE)).filter_results] == [code]
    state.close()
