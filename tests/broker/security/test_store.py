"""Changes of users, ACLs, tokens and quotas take effect once the security file has them."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Awaitable, Callable

import anyio
import anyio.from_thread
import pytest
import pytest_asyncio

from aiokwire.broker.log import MemoryStorage
from aiokwire.broker.security import AclOperation, Principal, ResourceType, SecurityStore, entity_of
from aiokwire.broker.state import BrokerState
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import StorageError
from aiokwire.security import Secret, scram_credential
from tests.broker.security.acting import ADMIN, ALICE, HOST, allow, ask, opened
from tests.broker.security.test_acl_requests import creating, creation, deleting

READ, TOPIC = AclOperation.READ, ResourceType.TOPIC
QUOTA = (entity_of([("user", "alice")]), {"producer_byte_rate": 5.0})
SHA_256 = "SCRAM-SHA-256"


class Disk(MemoryStorage):
    """A disk that can be full, and whose writes can be held."""

    def __init__(self) -> None:
        super().__init__()
        self._is_held = False
        self._arrived = anyio.Event()
        self._released = threading.Semaphore(0)

    def is_full(self, full: bool) -> None:
        self.capacity = sum(len(file.data) for file in self.files.values()) if full else None

    def hold(self) -> None:
        """From now on each write of a file waits for a `release`."""
        self._is_held = True

    def release(self, *, hold: bool = True) -> None:
        """Let the held write take place; with `hold` the next one is held, too."""
        self._is_held = hold
        self._released.release()

    async def arrived(self) -> None:
        """Wait for the next held write."""
        await self._arrived.wait()
        self._arrived = anyio.Event()

    def write(self, path: str, data: bytes | bytearray | memoryview) -> None:
        if self._is_held:
            anyio.from_thread.run_sync(self._arrived.set)
            assert self._released.acquire(timeout=30)
        super().write(path, data)


@pytest_asyncio.fixture
async def disk() -> AsyncIterator[Disk]:
    yield Disk()


@pytest_asyncio.fixture
async def state(disk: Disk) -> AsyncIterator[BrokerState]:
    running = opened(disk, delegation_token_secret_key="key")
    yield running
    disk.is_full(False)
    running.close()


def allowed(state: BrokerState) -> bool:
    assert state.authorizer is not None
    return state.authorizer.is_allowed(ALICE, HOST, READ, TOPIC, "t", is_asked=False)


async def create_acl(state: BrokerState) -> None:
    assert state.authorizer is not None
    await state.authorizer.create([allow(READ, TOPIC, "t")])


async def delete_acl(state: BrokerState) -> None:
    assert state.authorizer is not None
    await state.authorizer.delete([allow(READ, TOPIC, "t")])


async def create_user(state: BrokerState) -> None:
    await state.users.alter([("carol", SHA_256, scram_credential(SHA_256, Secret("word")))], [])


async def delete_user(state: BrokerState) -> None:
    await state.users.alter([], [("carol", SHA_256)])


async def set_quota(state: BrokerState) -> None:
    assert await state.quotas.alter([QUOTA]) == [None]


async def create_token(state: BrokerState) -> None:
    await state.tokens.create(ADMIN, ALICE, [], -1)


async def remove_token(state: BrokerState) -> None:
    (token,) = state.tokens.tokens()
    await state.tokens.expire(state.tokens.hmac_of(token.token_id), ALICE, -1)


async def shorten_token(state: BrokerState) -> None:
    (token,) = state.tokens.tokens()
    await state.tokens.renew(state.tokens.hmac_of(token.token_id), ALICE, 1000)


def in_force(state: BrokerState) -> object:
    """The users, ACLs, tokens and quotas that the broker applies."""
    return (
        allowed(state),
        state.users.names(),
        state.quotas.enabled,
        state.quotas.describe({}, strict=False),
        [(one.owner, one.expires_at) for one in state.tokens.tokens()],
    )


Change = Callable[[BrokerState], Awaitable[None]]
CREATIONS = [create_acl, create_user, set_quota, create_token]
LATER = [delete_acl, delete_user, remove_token, shorten_token]


@pytest.mark.parametrize("change", CREATIONS)
async def test_a_change_that_a_full_disk_refuses_is_not_in_force(
    state: BrokerState, disk: Disk, change: Change
) -> None:
    before = in_force(state)
    disk.is_full(True)
    with pytest.raises(StorageError):
        await change(state)
    assert in_force(state) == before
    disk.is_full(False)
    await change(state)
    assert in_force(state) != before


@pytest.mark.parametrize("change", LATER)
async def test_existing_entries_stay_in_force_when_a_full_disk_refuses_a_change(
    state: BrokerState, disk: Disk, change: Change
) -> None:
    for create in CREATIONS:
        await create(state)
    before = in_force(state)
    disk.is_full(True)
    with pytest.raises(StorageError):
        await change(state)
    assert in_force(state) == before


async def test_a_refused_change_is_not_written_by_a_later_one(state: BrokerState, disk: Disk) -> None:
    disk.is_full(True)
    with pytest.raises(StorageError):
        await create_acl(state)
    disk.is_full(False)
    await create_user(state)
    stored = SecurityStore(disk)
    stored.load()
    assert (stored.section("acls"), len(stored.section("scram"))) == ([], 1)


async def test_changes_at_the_same_time_all_take_effect(state: BrokerState) -> None:
    assert state.authorizer is not None
    names = [f"topic-{number}" for number in range(20)]
    async with anyio.create_task_group() as tasks:
        for name in names:
            tasks.start_soon(state.authorizer.create, [allow(READ, TOPIC, name)])
        for change in (create_user, set_quota, create_token, create_token):
            tasks.start_soon(change, state)
    who = Principal("User", "alice")
    assert all(state.authorizer.is_allowed(who, HOST, READ, TOPIC, name, is_asked=False) for name in names)
    assert (state.users.names(), state.quotas.enabled, len(state.tokens.tokens())) == (["carol"], True, 2)
    assert len(state.security.section("acls")) == len(names)


async def test_clients_get_the_error_of_the_disk_and_the_log_names_the_rules_in_force(
    state: BrokerState, disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    disk.is_full(True)
    created = await ask(state, creating(creation("t")), 3, ADMIN)
    assert [one.error_code for one in created.results] == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert "cannot store 1 ACL(s), which were not created" in caplog.text
    disk.is_full(False)
    await create_acl(state)
    disk.is_full(True)
    deleted = await ask(state, deleting("t"), 3, ADMIN)
    assert [one.error_code for one in deleted.filter_results] == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert "cannot store the removal of 1 ACL(s), which remain in force" in caplog.text
    assert allowed(state)


@pytest.mark.parametrize("change", CREATIONS)
async def test_a_change_that_is_cancelled_while_it_waits_is_in_force_if_it_is_stored(
    state: BrokerState, disk: Disk, change: Change
) -> None:
    """The write of another section, which waited before it, may store its rows as well."""
    before = in_force(state)
    cancelled = anyio.CancelScope()

    async def give_up() -> None:
        with cancelled:
            await change(state)

    disk.hold()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(state.security.replace, "first", [])
        await disk.arrived()
        tasks.start_soon(state.security.replace, "second", [])
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(give_up)
        await anyio.wait_all_tasks_blocked()
        disk.release()
        await disk.arrived()
        cancelled.cancel()
        await anyio.wait_all_tasks_blocked()
        disk.release(hold=False)
    state.security = SecurityStore(disk)
    state.security.load()
    is_stored = any(state.security.section(name) for name in ("acls", "scram", "quotas", "tokens"))
    assert (in_force(state) != before) == is_stored


async def test_a_change_that_was_cancelled_before_its_turn_has_no_effect(state: BrokerState, disk: Disk) -> None:
    disk.hold()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(create_acl, state)
        await disk.arrived()
        with anyio.move_on_after(0):
            await delete_acl(state)
        disk.release(hold=False)
    assert allowed(state)
    assert state.security.section("acls")
