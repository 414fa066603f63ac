"""Users, quotas and delegation tokens on the embedded broker; the messages of ACLs."""

from __future__ import annotations

import asyncio
import dataclasses
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from aiokwire.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AclResourceType,
    Admin,
    ClientQuotaEntity,
    NewTopic,
    PatternType,
    QuotaName,
    ScramCredentialDeletion,
    ScramCredentialInfo,
    ScramCredentialUpsertion,
    ScramMechanism,
)
from aiokwire.admin.acls import create_request, operations_of, read_created, read_deleted, read_described
from aiokwire.admin.users import rounds
from aiokwire.broker import Broker, Listener
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import AuthenticationFailed, BrokerError, InvalidArgument, InvalidRequestError, ProtocolViolation
from aiokwire.protocol.messages import create_acls, delete_acls, delete_topics, describe_acls

SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512
PASSWORDS = {"alice": "alice's secret", "bob": "bob's secret"}


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(
        topics={"orders": 1},
        listeners=[Listener(protocol="SASL_PLAINTEXT", mechanisms=["SCRAM-SHA-256", "SCRAM-SHA-512"])],
        users=PASSWORDS,
        delegation_token_secret_key="the broker's key",
    ) as broker:
        yield broker


def admin_of(broker: Broker, user: str, password: str, mechanism: str = "SCRAM-SHA-512", **options: Any) -> Admin:
    return Admin(
        broker.bootstrap_servers,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=mechanism,
        sasl_plain_username=user,
        sasl_plain_password=password,
        **options,
    )


@pytest.fixture
async def admin(broker: Broker) -> AsyncIterator[Admin]:
    async with admin_of(broker, "alice", PASSWORDS["alice"]) as admin:
        yield admin


# --- users ------------------------------------------------------------------------------------------------------------


async def test_a_stored_user_can_log_in_until_the_credential_is_deleted(broker: Broker, admin: Admin) -> None:
    await admin.alter_user_scram_credentials(
        [ScramCredentialUpsertion("carol", "sesame"), ScramCredentialUpsertion("carol", "sesame", SHA_256, 8192)]
    )
    described = await admin.describe_user_scram_credentials(["carol"])
    assert described["carol"] == (ScramCredentialInfo(SHA_256, 8192), ScramCredentialInfo(SHA_512, 4096))
    for mechanism in (SHA_256, SHA_512):
        async with admin_of(broker, "carol", "sesame", mechanism.mechanism_name) as hers:
            assert [topic.name for topic in await hers.list_topics()] == ["orders"]
    done = await admin.alter_user_scram_credentials([ScramCredentialDeletion("carol", SHA_512)])
    assert done.check() == {"carol": None}
    with pytest.raises(AuthenticationFailed):
        await admin_of(broker, "carol", "sesame").start()
    assert (await admin.describe_user_scram_credentials())["carol"] == (ScramCredentialInfo(SHA_256, 8192),)


async def test_an_unknown_user_has_its_own_error(admin: Admin) -> None:
    results = await admin.describe_user_scram_credentials(["mallory"])
    assert results.errors["mallory"].code is ErrorCode.RESOURCE_NOT_FOUND
    altered = await admin.alter_user_scram_credentials(
        [ScramCredentialDeletion("mallory", SHA_256), ScramCredentialUpsertion("dave", "sesame")]
    )
    assert altered.errors["mallory"].code is ErrorCode.RESOURCE_NOT_FOUND
    assert list(altered.succeeded) == ["dave"]


async def test_two_alterations_of_one_credential_are_refused_before_anything_is_sent(admin: Admin) -> None:
    with pytest.raises(InvalidArgument, match="each user and mechanism once"):
        await admin.alter_user_scram_credentials(
            [ScramCredentialUpsertion("carol", "sesame"), ScramCredentialDeletion("carol", SHA_512)]
        )


def test_alterations_of_one_user_are_sent_one_after_the_other() -> None:
    alterations = [ScramCredentialDeletion(user, one) for user in ("a", "b") for one in (SHA_256, SHA_512)]
    assert [[(one.user, one.mechanism) for one in part] for part in rounds(alterations)] == [
        [("a", SHA_256), ("b", SHA_256)],
        [("a", SHA_512), ("b", SHA_512)],
    ]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("", "x"), "user name"),
        (("a", ""), "must not be empty"),
        (("a", "x", "SCRAM-SHA-256"), "ScramMechanism"),
        (("a", "x", SHA_256, 4095), "4096 to 16384"),
        (("a", "x", SHA_256, 16385), "4096 to 16384"),
    ],
)
def test_a_credential_that_brokers_refuse_is_refused_here(arguments: Any, complaint: str) -> None:
    with pytest.raises(InvalidArgument, match=complaint):
        ScramCredentialUpsertion(*arguments)


def test_a_password_is_not_shown() -> None:
    assert "sesame" not in repr(ScramCredentialUpsertion("carol", "sesame"))


# --- quotas -----------------------------------------------------------------------------------------------------------


async def test_quotas_are_set_described_and_removed(admin: Admin) -> None:
    alice = ClientQuotaEntity(user="alice")
    everyone = ClientQuotaEntity(user=QuotaName.DEFAULT, client_id="app")
    changes = {alice: {"producer_byte_rate": 1e6, "consumer_byte_rate": 2e6}, everyone: {"request_percentage": 12.5}}
    (await admin.alter_client_quotas(changes)).check()
    assert await admin.describe_client_quotas() == changes
    assert await admin.describe_client_quotas(user="alice") == {alice: changes[alice]}
    assert list(await admin.describe_client_quotas(user=QuotaName.ANY, client_id="app")) == [everyone]
    assert list(await admin.describe_client_quotas(user=QuotaName.ANY, strict=True)) == [alice]
    assert list(await admin.describe_client_quotas(user=QuotaName.DEFAULT)) == [everyone]
    (await admin.alter_client_quotas({alice: {"producer_byte_rate": None}})).check()
    assert await admin.describe_client_quotas(user="alice") == {alice: {"consumer_byte_rate": 2e6}}


async def test_each_entity_has_its_result_or_its_error(admin: Admin) -> None:
    good, bad = ClientQuotaEntity(client_id="app"), ClientQuotaEntity(ip="127.0.0.1")
    results = await admin.alter_client_quotas(
        {good: {"request_percentage": 1.0}, bad: {"request_percentage": 1.0}}, validate_only=True
    )
    assert list(results.succeeded) == [good]
    assert results.errors[bad].code is ErrorCode.INVALID_REQUEST
    assert await admin.describe_client_quotas() == {}


async def test_a_filter_that_the_broker_refuses_raises(admin: Admin) -> None:
    with pytest.raises(InvalidRequestError, match="ip"):
        await admin.describe_client_quotas(ip="127.0.0.1", user="alice")


@pytest.mark.parametrize("parts", [{}, {"user": "a", "ip": "b"}, {"user": ""}, {"user": QuotaName.ANY}])
def test_a_meaningless_entity_is_rejected_by_the_client(parts: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        ClientQuotaEntity(**parts)


# --- delegation tokens ------------------------------------------------------------------------------------------------


async def test_a_client_logs_in_with_a_token_that_its_owner_created(broker: Broker, admin: Admin) -> None:
    token = await admin.create_delegation_token(renewers=["User:bob"], max_lifetime_ms=3_600_000)
    assert (token.owner, token.requester, token.renewers) == ("User:alice", "User:alice", ("User:bob",))
    assert token.max_at - token.issued_at == 3_600_000
    assert repr(token.hmac) not in repr(token)
    async with admin_of(broker, token.token_id, token.password.reveal(), sasl_delegation_token=True) as other:
        assert [topic.name for topic in await other.list_topics()] == ["orders"]
        with pytest.raises(BrokerError) as caught:  # a token cannot create further ones
            await other.create_delegation_token()
        assert caught.value.code is ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


async def test_a_token_is_described_renewed_and_expired(broker: Broker, admin: Admin) -> None:
    token = await admin.create_delegation_token(renewers=["User:bob"])
    assert await admin.describe_delegation_token() == [token]
    assert await admin.describe_delegation_token(["User:carol"]) == []
    async with admin_of(broker, "bob", PASSWORDS["bob"]) as bob:
        assert await bob.describe_delegation_token(["User:alice"]) == [token]
        assert await bob.renew_delegation_token(token, renew_period_ms=60_000) < token.expires_at
        assert await bob.renew_delegation_token(token.hmac) >= token.expires_at
        mine = await bob.create_delegation_token()
    with pytest.raises(BrokerError) as caught:
        await admin.renew_delegation_token(mine)
    assert caught.value.code is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert await admin.expire_delegation_token(token, expiry_time_period_ms=60_000) < token.max_at
    assert await admin.expire_delegation_token(token) == -1
    assert await admin.describe_delegation_token() == []
    with pytest.raises(AuthenticationFailed):
        await admin_of(broker, token.token_id, token.password.reveal(), sasl_delegation_token=True).start()


async def test_a_principal_without_a_type_is_refused_here(admin: Admin) -> None:
    for call in (admin.create_delegation_token(owner="bob"), admin.describe_delegation_token(["bob"])):
        with pytest.raises(InvalidArgument, match="User:alice"):
            await call


# --- authorized operations --------------------------------------------------------------------------------------------


async def test_authorized_operations_are_described_on_request(admin: Admin) -> None:
    assert (await admin.describe_topic("orders")).authorized_operations is None
    assert (await admin.describe_cluster()).authorized_operations is None
    topic = await admin.describe_topic("orders", include_authorized_operations=True)
    assert topic.authorized_operations is not None
    assert {AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE} < topic.authorized_operations
    cluster = await admin.describe_cluster(include_authorized_operations=True)
    assert AclOperation.IDEMPOTENT_WRITE in (cluster.authorized_operations or ())


def test_bits_are_operations_and_unknown_bits_are_left_out() -> None:
    assert operations_of(-(2**31)) is None
    assert operations_of(0) == frozenset()
    assert operations_of(1 << 3 | 1 << 8 | 1 << 30) == frozenset({AclOperation.READ, AclOperation.DESCRIBE})


# --- ACLs -------------------------------------------------------------------------------------------------------------

READ = AclBinding("User:alice", AclOperation.READ, AclResourceType.TOPIC, "orders")
DENY = AclBinding(
    "User:*", AclOperation.ALL, AclResourceType.GROUP, "g-", PatternType.PREFIXED, "10.0.0.1", AclPermissionType.DENY
)


def test_each_acl_has_its_result_or_its_error() -> None:
    request = create_request([READ, DENY])
    assert [(one.resource_type, one.resource_pattern_type, one.permission_type) for one in request.creations] == [
        (2, 3, 3),
        (3, 4, 2),
    ]
    refused = create_acls.AclCreationResult(error_code=ErrorCode.INVALID_REQUEST, error_message="no such host")
    response = create_acls.CreateAclsResponse(results=[create_acls.AclCreationResult(), refused])
    results = read_created(response, [READ, DENY])
    assert list(results.succeeded) == [READ]
    with pytest.raises(InvalidRequestError, match=r"deny User:\* all group prefix 'g-' from 10\.0\.0\.1: no such host"):
        results[DENY]
    with pytest.raises(ProtocolViolation):
        read_created(response, [READ])


def test_described_acls_are_sorted_and_unknown_kinds_are_kept() -> None:
    response = describe_acls.DescribeAclsResponse(
        resources=[
            describe_acls.DescribeAclsResource(
                resource_type=3,
                resource_name="g-",
                pattern_type=4,
                acls=[
                    describe_acls.AclDescription(principal="User:*", host="10.0.0.1", operation=2, permission_type=2)
                ],
            ),
            describe_acls.DescribeAclsResource(
                resource_type=2,
                resource_name="orders",
                acls=[
                    describe_acls.AclDescription(principal="User:alice", host="*", operation=99, permission_type=3),
                    describe_acls.AclDescription(principal="User:alice", host="*", operation=3, permission_type=3),
                ],
            ),
        ]
    )
    unknown, *known = read_described(response)
    assert unknown.operation is AclOperation.UNKNOWN
    assert known == [READ, DENY]


def test_a_filter_fails_if_one_of_its_acls_cannot_be_deleted() -> None:
    deleted = delete_acls.DeleteAclsMatchingAcl(
        resource_type=2, resource_name="orders", principal="User:alice", host="*", operation=3, permission_type=3
    )
    kept = delete_acls.DeleteAclsMatchingAcl(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    filters = [AclBindingFilter("User:alice"), AclBindingFilter("User:bob")]
    response = delete_acls.DeleteAclsResponse(
        filter_results=[
            delete_acls.DeleteAclsFilterResult(matching_acls=[deleted]),
            delete_acls.DeleteAclsFilterResult(matching_acls=[kept]),
        ]
    )
    results = read_deleted(response, filters)
    assert results.succeeded == {filters[0]: [READ]}
    assert list(results.errors) == [filters[1]]


@pytest.mark.parametrize(
    "changes",
    [
        {"principal": "alice"},
        {"resource_name": ""},
        {"operation": AclOperation.ANY},
        {"resource_type": AclResourceType.ANY},
        {"pattern_type": PatternType.MATCH},
        {"permission": AclPermissionType.ANY},
        {"operation": AclOperation.UNKNOWN},
        {"operation": 3},
    ],
)
def test_an_acl_that_cannot_be_created_is_refused_here(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        create_request([dataclasses.replace(READ, **changes)])


# --- topics under a quota (KIP-599) -----------------------------------------------------------------------------------


@pytest.fixture
async def throttled() -> AsyncIterator[Admin]:
    """An admin client that has used up its quota: a partition each 200 ms, none for a second."""
    async with (
        Broker(controller_quota_window_num=2, topics={"old": 1}) as broker,
        Admin(broker.bootstrap_servers) as it,
    ):
        quota = {ClientQuotaEntity(client_id=QuotaName.DEFAULT): {"controller_mutation_rate": 5.0}}
        (await it.alter_client_quotas(quota)).check()
        await it.create_topic("first", 15)
        yield it


async def test_topics_that_a_quota_refuses_are_created_after_the_throttle_time(throttled: Admin) -> None:
    began = asyncio.get_running_loop().time()
    done = await throttled.create_topics([NewTopic("first", 1), NewTopic("second", 1), NewTopic("third", 12)])
    assert set(done.succeeded) == {"second", "third"}
    assert {name: error.code for name, error in done.errors.items()} == {"first": ErrorCode.TOPIC_ALREADY_EXISTS}
    assert asyncio.get_running_loop().time() - began > 0.5
    assert {"second", "third"} <= {topic.name for topic in await throttled.list_topics()}


async def test_partitions_are_added_and_topics_deleted_after_the_throttle_time(throttled: Admin) -> None:
    assert (await throttled.create_partitions({"old": 12})).check() == {"old": 12}
    await throttled.delete_topic("old")
    assert [topic.name for topic in await throttled.list_topics()] == ["first"]


async def test_topics_that_were_deleted_before_a_throttled_retry_failed_are_reported() -> None:
    def respond(request: delete_topics.DeleteTopicsRequest) -> delete_topics.DeleteTopicsResponse:
        codes = {"a": ErrorCode.NONE, "b": ErrorCode.THROTTLING_QUOTA_EXCEEDED}
        results = [delete_topics.DeletableTopicResult(name=name, error_code=code) for name, code in codes.items()]
        return delete_topics.DeleteTopicsResponse(responses=results)

    async with Broker(topics={"a": 1, "b": 1}) as broker, Admin(broker.bootstrap_servers) as admin:
        broker.faults.on(delete_topics.DeleteTopicsRequest).respond(respond)
        broker.faults.on(delete_topics.DeleteTopicsRequest, times=None).drop()
        done = await admin.delete_topics(["a", "b"], timeout=0.5)
    assert set(done.succeeded) == {"a"}
    assert done.errors["b"].code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert "the retry failed: " in str(done.errors["b"])


async def test_a_quota_that_outlasts_the_timeout_is_the_error_at_once(throttled: Admin) -> None:
    began = asyncio.get_running_loop().time()
    done = await throttled.create_topics([NewTopic("second", 1)], timeout=0.6)
    assert asyncio.get_running_loop().time() - began < 0.5
    error = done.errors["second"]
    assert error.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert re.search(r"the quota allows it in \d+\.\d s, after the timeout", str(error))
