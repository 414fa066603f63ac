"""Delegation tokens: their lifetime, the users who may change them, and logins with them."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from aiokwire.broker import Broker
from aiokwire.broker.dispatch import Call, Origin
from aiokwire.broker.handlers import (
    create_delegation_token,
    describe_delegation_token,
    expire_delegation_token,
    renew_delegation_token,
)
from aiokwire.broker.log import MemoryStorage
from aiokwire.broker.security import AclOperation, DelegationTokens, Principal, ResourceType, SecurityStore
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import AuthenticationFailed, BrokerError
from aiokwire.protocol.messages import create_delegation_token as creation
from aiokwire.protocol.messages import describe_delegation_token as description
from aiokwire.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from aiokwire.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from aiokwire.security import ScramServer, Secret, UserPassword
from aiokwire.security.scram import ScramClient
from tests.broker.raw import RawClient
from tests.broker.security.acting import allow

ALICE = Principal("User", "alice")
BOB = Principal("User", "bob")
CAROL = Principal("User", "carol")
DAY, WEEK = 86_400_000, 604_800_000
START = 1_700_000_000_000


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now


def tokens_of(storage: MemoryStorage, clock: Clock, key: str | None = "key of the broker") -> DelegationTokens:
    store = SecurityStore(storage)
    store.load()
    secret = None if key is None else Secret(key)
    tokens = DelegationTokens(store, secret, clock, max_lifetime_ms=WEEK, renewal_ms=DAY)
    tokens.load()
    return tokens


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def tokens(clock: Clock) -> DelegationTokens:
    return tokens_of(MemoryStorage(), clock)


async def test_a_token_is_valid_for_a_day_and_renewable_for_a_week(tokens: DelegationTokens, clock: Clock) -> None:
    token = await tokens.create(ALICE, ALICE, [BOB], -1)
    assert (token.issued_at, token.expires_at, token.max_at) == (START, START + DAY, START + WEEK)
    given = tokens.hmac_of(token.token_id)
    assert len(given) == 64
    clock.now += DAY
    assert await tokens.renew(given, BOB, -1) == clock.now + DAY
    assert await tokens.renew(given, ALICE, 5000) == clock.now + 5000
    for _ in range(6):
        await tokens.renew(given, ALICE, 10 * WEEK)
        clock.now += DAY - 1
    assert await tokens.renew(given, ALICE, -1) == START + WEEK


async def test_a_short_lifetime_bounds_the_first_expiry(tokens: DelegationTokens) -> None:
    token = await tokens.create(ALICE, ALICE, [], 5000)
    assert token.expires_at == token.max_at == START + 5000
    assert (await tokens.create(ALICE, ALICE, [], 10 * WEEK)).max_at == START + WEEK


async def test_an_expired_token_is_of_no_use_and_is_removed(tokens: DelegationTokens, clock: Clock) -> None:
    token = await tokens.create(ALICE, ALICE, [], -1)
    given = tokens.hmac_of(token.token_id)
    clock.now += DAY + 1
    with pytest.raises(BrokerError) as caught:
        await tokens.renew(given, ALICE, -1)
    assert caught.value.code is ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert tokens.scram_credential(token.token_id, "SCRAM-SHA-256") is None
    assert tokens.tokens() == []
    await tokens.remove_expired()
    with pytest.raises(BrokerError) as caught:
        await tokens.expire(given, ALICE, -1)
    assert caught.value.code is ErrorCode.DELEGATION_TOKEN_NOT_FOUND


async def test_a_token_expires_at_once_or_after_a_period(tokens: DelegationTokens, clock: Clock) -> None:
    token = await tokens.create(ALICE, ALICE, [], -1)
    given = tokens.hmac_of(token.token_id)
    assert await tokens.expire(given, ALICE, 1000) == START + 1000
    assert await tokens.expire(given, ALICE, 10 * WEEK) == START + WEEK
    assert await tokens.expire(given, ALICE, -1) == -1
    assert tokens.tokens() == []


async def test_only_the_owner_and_the_renewers_change_a_token(tokens: DelegationTokens) -> None:
    token = await tokens.create(CAROL, ALICE, [BOB], -1)
    for change in (tokens.renew, tokens.expire):
        with pytest.raises(BrokerError) as caught:
            await change(tokens.hmac_of(token.token_id), CAROL, 1000)
        assert caught.value.code is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH


async def test_tokens_outlive_a_restart_without_their_hmacs(clock: Clock) -> None:
    storage = MemoryStorage()
    before = tokens_of(storage, clock)
    token = await before.create(CAROL, ALICE, [BOB], -1)
    given = before.hmac_of(token.token_id)
    after = tokens_of(storage, clock)
    assert after.tokens() == [token]
    assert await after.renew(given, ALICE, 1000) == START + 1000
    stored = storage.read("aiokwire-security.json")
    assert stored is not None
    assert given.hex().encode() not in stored
    assert base64.b64encode(given) not in stored


async def test_another_secret_key_makes_former_tokens_useless(clock: Clock) -> None:
    storage = MemoryStorage()
    before = tokens_of(storage, clock)
    token = await before.create(ALICE, ALICE, [], -1)
    after = tokens_of(storage, clock, "another key")
    with pytest.raises(BrokerError) as caught:
        await after.renew(before.hmac_of(token.token_id), ALICE, -1)
    assert caught.value.code is ErrorCode.DELEGATION_TOKEN_NOT_FOUND


async def test_without_a_secret_key_tokens_are_off(clock: Clock) -> None:
    tokens = tokens_of(MemoryStorage(), clock, None)
    for work in (tokens.create(ALICE, ALICE, [], -1), tokens.renew(b"x", ALICE, -1), tokens.expire(b"x", ALICE, -1)):
        with pytest.raises(BrokerError) as caught:
            await work
        assert caught.value.code is ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    assert tokens.scram_credential("x", "SCRAM-SHA-256") is None


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_a_client_logs_in_with_a_token_as_its_owner(tokens: DelegationTokens, mechanism: str) -> None:
    token = await tokens.create(CAROL, ALICE, [], -1)
    password = Secret(base64.b64encode(tokens.hmac_of(token.token_id)).decode())

    async def login(password: Secret) -> ScramServer:
        client = ScramClient(mechanism, UserPassword(token.token_id, password), is_token=True)
        server = ScramServer(
            mechanism, lambda _: None, find_token=lambda token_id: tokens.scram_credential(token_id, mechanism)
        )
        first = await server.evaluate_response(await client.evaluate_challenge(b""))
        await client.evaluate_challenge(await server.evaluate_response(await client.evaluate_challenge(first)))
        assert client.is_complete
        return server

    server = await login(password)
    assert server.is_token
    assert server.authorization_id == "alice"
    assert server.expires_at == token.expires_at / 1000
    with pytest.raises(AuthenticationFailed):
        await login(Secret("wrong"))


# --- requests ---------------------------------------------------------------------------------------------------------


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(delegation_token_secret_key="key of the broker") as running:
        yield running


def called(broker: Broker, request: Any, principal: Principal, version: int) -> Call:
    return Call(broker.state, api=request.API, version=version, origin=Origin(principal=principal))


async def create(broker: Broker, principal: Principal, *, version: int = 3, **fields: Any) -> Any:
    request = creation.CreateDelegationTokenRequest(max_lifetime_ms=-1, **fields)
    return await create_delegation_token.handle(request, called(broker, request, principal, version))


def describe(broker: Broker, principal: Principal, owners: list[Principal] | None = None, *, version: int = 3) -> Any:
    wanted = None if owners is None else [
        description.DescribeDelegationTokenOwner(principal_type=one.type, principal_name=one.name) for one in owners
    ]  # fmt: skip
    request = description.DescribeDelegationTokenRequest(owners=wanted)
    return describe_delegation_token.handle(request, called(broker, request, principal, version))


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_a_token_is_created_described_renewed_and_expired(broker: Broker, version: int) -> None:
    renewer = creation.CreatableRenewers(principal_type="User", principal_name="bob")
    created = await create(broker, ALICE, version=version, renewers=[renewer])
    assert created.error_code == 0
    assert Principal(created.principal_type, created.principal_name) == ALICE
    assert created.hmac == broker.state.tokens.hmac_of(created.token_id)
    assert created.token_requester_principal_name == ("alice" if version >= 3 else "")
    (token,) = describe(broker, BOB, version=version).tokens
    assert (token.token_id, token.hmac) == (created.token_id, created.hmac)
    assert [(one.principal_type, one.principal_name) for one in token.renewers] == [tuple(BOB)]
    renewal = RenewDelegationTokenRequest(hmac=created.hmac, renew_period_ms=1000)
    renewed = await renew_delegation_token.handle(renewal, called(broker, renewal, BOB, 2))
    assert renewed.error_code == 0
    assert renewed.expiry_timestamp_ms < created.expiry_timestamp_ms
    end = ExpireDelegationTokenRequest(hmac=created.hmac, expiry_time_period_ms=-1)
    assert (await expire_delegation_token.handle(end, called(broker, end, ALICE, 2))).error_code == 0
    assert describe(broker, ALICE).tokens == []


async def test_a_user_sees_its_own_tokens_only(broker: Broker) -> None:
    mine = await create(broker, ALICE)
    await create(broker, BOB)
    assert [one.token_id for one in describe(broker, ALICE).tokens] == [mine.token_id]
    assert [one.token_id for one in describe(broker, ALICE, [ALICE, BOB]).tokens] == [mine.token_id]
    assert describe(broker, ALICE, [BOB]).tokens == []
    assert describe(broker, ALICE, []).tokens == []


async def test_a_token_for_another_user_belongs_to_that_user(broker: Broker) -> None:
    created = await create(broker, ALICE, owner_principal_type="User", owner_principal_name="carol")
    assert (created.principal_name, created.token_requester_principal_name) == ("carol", "alice")
    (token,) = describe(broker, CAROL).tokens
    assert (token.principal_name, token.token_requester_principal_name) == ("carol", "alice")


async def test_renewers_are_users(broker: Broker) -> None:
    group = creation.CreatableRenewers(principal_type="Group", principal_name="staff")
    assert (await create(broker, ALICE, renewers=[group])).error_code == ErrorCode.INVALID_PRINCIPAL_TYPE


async def test_a_connection_without_a_login_cannot_manage_tokens(broker: Broker) -> None:
    client = await RawClient.connect(broker)
    for request, version in (
        (creation.CreateDelegationTokenRequest(max_lifetime_ms=-1), 3),
        (RenewDelegationTokenRequest(hmac=b"x"), 2),
        (ExpireDelegationTokenRequest(hmac=b"x"), 2),
        (description.DescribeDelegationTokenRequest(owners=None), 3),
    ):
        answer: Any = await client.ask(request, version)
        assert answer.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    await client.close()


# --- with an authorizer -----------------------------------------------------------------------------------------------


async def test_acls_allow_tokens_for_other_users_and_to_see_theirs() -> None:
    async with Broker(
        delegation_token_secret_key="key",
        authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        super_users="User:root",
    ) as broker:
        authorizer = broker.state.authorizer
        assert authorizer is not None
        for_carol: dict[str, Any] = {"owner_principal_type": "User", "owner_principal_name": "carol"}
        refused = await create(broker, ALICE, **for_carol)
        assert refused.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        operations = (AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS)
        await authorizer.create([allow(operation, ResourceType.USER, "User:carol") for operation in operations])
        assert (await create(broker, ALICE, **for_carol)).error_code == 0
        hers = await create(broker, CAROL)
        his = await create(broker, BOB)
        assert hers.token_id in [one.token_id for one in describe(broker, ALICE).tokens]
        assert his.token_id not in [one.token_id for one in describe(broker, ALICE).tokens]
        await authorizer.create([allow(AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, his.token_id)])
        assert his.token_id in [one.token_id for one in describe(broker, ALICE).tokens]
        assert len(describe(broker, Principal("User", "root")).tokens) == 3
