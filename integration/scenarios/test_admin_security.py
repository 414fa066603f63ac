"""ACLs, users and quotas through `Admin`: the same results on Kafka and the embedded broker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import anyio
import pytest

from aiokwire import Admin, BrokerError, ErrorCode
from aiokwire.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AclResourceType,
    ClientQuotaEntity,
    PatternType,
    QuotaName,
    ScramCredentialDeletion,
    ScramCredentialInfo,
    ScramCredentialUpsertion,
    ScramMechanism,
)
from integration.conftest import broker_with
from integration.kafka import KafkaServer
from integration.scenarios.common import PATIENCE

SETTINGS = {
    "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super_users": "User:ANONYMOUS",
    "delegation_token_secret_key": "key",
}
SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512
READ = AclBinding("User:alice", AclOperation.READ, AclResourceType.TOPIC, "orders")
DENY = AclBinding(
    "User:*", AclOperation.ALL, AclResourceType.GROUP, "g-", PatternType.PREFIXED, "10.0.0.1", AclPermissionType.DENY
)


@pytest.fixture(scope="module", params=["embedded", "kafka-4.3.1"])
def guarded(request: pytest.FixtureRequest) -> Iterator[KafkaServer]:
    """A broker with an authorizer, whose super user is a client without a login."""
    with broker_with(request.config, request.param, SETTINGS) as server:
        yield server


@pytest.fixture
async def admin(guarded: KafkaServer) -> AsyncIterator[Admin]:
    async with Admin(guarded.bootstrap_servers, default_api_timeout_ms=PATIENCE * 1000) as admin:
        yield admin


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait until a change has reached the broker's metadata."""
    with anyio.fail_after(PATIENCE):
        while not await condition():  # noqa: ASYNC110 - brokers send no event
            await anyio.sleep(0.05)


async def test_acls_are_created_found_and_deleted(admin: Admin) -> None:
    (await admin.create_acls([READ, DENY])).check()
    await until(lambda: _has(admin, [READ, DENY]))
    affecting = AclBindingFilter(
        resource_type=AclResourceType.GROUP, resource_name="g-1", pattern_type=PatternType.MATCH
    )
    assert await admin.describe_acls(affecting) == [DENY]
    deleted = await admin.delete_acls([AclBindingFilter("User:alice"), AclBindingFilter("User:bob")])
    assert list(deleted.check().values()) == [[READ], []]
    await admin.delete_acls([AclBindingFilter()])
    await until(lambda: _has(admin, []))


async def _has(admin: Admin, wanted: list[AclBinding]) -> bool:
    return await admin.describe_acls() == wanted


async def test_users_are_stored_described_and_deleted(admin: Admin) -> None:
    altered = await admin.alter_user_scram_credentials(
        [
            ScramCredentialUpsertion("alice", "sesame"),
            ScramCredentialUpsertion("alice", "sesame", SHA_256, 8192),
            ScramCredentialDeletion("mallory", SHA_256),
        ]
    )
    assert list(altered.succeeded) == ["alice"]
    assert altered.errors["mallory"].code is ErrorCode.RESOURCE_NOT_FOUND
    infos = (ScramCredentialInfo(SHA_256, 8192), ScramCredentialInfo(SHA_512, 4096))

    async def are_stored() -> bool:
        return (await admin.describe_user_scram_credentials()).succeeded.get("alice") == infos

    await until(are_stored)
    described = await admin.describe_user_scram_credentials(["mallory"])
    assert described.errors["mallory"].code is ErrorCode.RESOURCE_NOT_FOUND
    both = [ScramCredentialDeletion("alice", one) for one in (SHA_256, SHA_512)]
    assert list((await admin.alter_user_scram_credentials(both)).check()) == ["alice"]


async def test_quotas_are_set_described_and_removed(admin: Admin) -> None:
    alice = ClientQuotaEntity(user="alice", client_id=QuotaName.DEFAULT)
    wrong = {
        ClientQuotaEntity(ip="10.0.0.1"): {"producer_byte_rate": 1.0},
        ClientQuotaEntity(user="zero"): {"producer_byte_rate": 0.0},
        ClientQuotaEntity(user="part"): {"producer_byte_rate": 1.5},
        ClientQuotaEntity(user="what"): {"speed": 1.0},
    }
    quotas = {"producer_byte_rate": 1e6, "request_percentage": 12.5}
    results = await admin.alter_client_quotas({alice: quotas, **wrong})
    assert list(results.succeeded) == [alice]
    assert {error.code for error in results.errors.values()} == {ErrorCode.INVALID_REQUEST}
    assert set(results.errors) == set(wrong)

    async def are_set() -> bool:
        return await admin.describe_client_quotas() == {alice: quotas}

    await until(are_set)
    assert await admin.describe_client_quotas(user=QuotaName.ANY) == {alice: quotas}
    assert await admin.describe_client_quotas(user="alice", strict=True) == {}
    with pytest.raises(BrokerError) as refused:
        await admin.describe_client_quotas(user="alice", ip="10.0.0.1")
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    (await admin.alter_client_quotas({alice: dict.fromkeys(quotas)})).check()


async def test_tokens_need_a_login(admin: Admin) -> None:
    for call in (
        admin.create_delegation_token(),
        admin.describe_delegation_token(),
        admin.renew_delegation_token(b"x"),
    ):
        with pytest.raises(BrokerError) as refused:
            await call
        assert refused.value.code is ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


async def test_authorized_operations_are_those_of_a_super_user(admin: Admin) -> None:
    cluster = await admin.describe_cluster(include_authorized_operations=True)
    assert set(cluster.authorized_operations or ()) == {
        AclOperation.CREATE, AclOperation.ALTER, AclOperation.DESCRIBE, AclOperation.CLUSTER_ACTION,
        AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS, AclOperation.IDEMPOTENT_WRITE,
    }  # fmt: skip
