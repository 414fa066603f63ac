"""Users with passwords: the requests that alter and describe them, what is kept, who may log in."""

from __future__ import annotations

from pathlib import Path

import pytest

from aiokwire.broker import Broker, Listener
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import StorageError
from aiokwire.protocol.messages import alter_user_scram_credentials as alter
from aiokwire.protocol.messages import describe_user_scram_credentials as describe
from aiokwire.security import Secret, salted_password
from tests.broker.raw import RawClient, log_in
from tests.broker.security.test_logins import new_broker, sasl_client

SHA_256, SHA_512 = 1, 2
NAMES = {SHA_256: "SCRAM-SHA-256", SHA_512: "SCRAM-SHA-512"}


def upsertion(
    name: str = "carol", mechanism: int = SHA_256, iterations: int = 4096, password: str = "passw0rd"
) -> alter.ScramCredentialUpsertion:
    """A credential as a client sends it."""
    salted = salted_password(NAMES.get(mechanism, "SCRAM-SHA-256"), Secret(password), b"salt", max(iterations, 1))
    return alter.ScramCredentialUpsertion(
        name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=salted
    )


async def change(
    client: RawClient,
    upsertions: list[alter.ScramCredentialUpsertion] | None = None,
    deletions: list[tuple[str, int]] | None = None,
) -> dict[str, tuple[int, str | None]]:
    """The error code and message of each user."""
    request = alter.AlterUserScramCredentialsRequest(
        upsertions=upsertions or [],
        deletions=[alter.ScramCredentialDeletion(name=name, mechanism=number) for name, number in deletions or []],
    )
    answer = await client.ask(request, 0)
    return {one.user: (one.error_code, one.error_message) for one in answer.results}


async def described(client: RawClient, *names: str) -> dict[str, tuple[int, list[tuple[int, int]]]]:
    """The error code, mechanisms and iterations of each user."""
    users = [describe.UserName(name=name) for name in names] or None
    answer = await client.ask(describe.DescribeUserScramCredentialsRequest(users=users), 0)
    return {
        one.user: (one.error_code, [(info.mechanism, info.iterations) for info in one.credential_infos])
        for one in answer.results
    }


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
async def test_a_user_created_by_a_client_may_log_in_until_deleted(mechanism: str) -> None:
    async with new_broker() as broker:
        admin = await RawClient.connect(broker, listener="PLAINTEXT")
        assert await change(admin, [upsertion()]) == {"carol": (0, None)}
        for expected in (0, ErrorCode.SASL_AUTHENTICATION_FAILED):
            client = await RawClient.connect(broker)
            answer = await log_in(client, sasl_client(mechanism, "carol", "passw0rd"))
            assert answer.error_code == expected
            await client.close()
            if not expected:
                assert await change(admin, deletions=[("carol", SHA_256)]) == {"carol": (0, None)}
        await admin.close()


async def test_users_are_described_without_their_keys() -> None:
    async with new_broker(users={}) as broker:
        client = await RawClient.connect(broker, listener="PLAINTEXT")
        await change(client, [upsertion(), upsertion(mechanism=SHA_512, iterations=8192), upsertion("dave")])
        both = [(SHA_256, 4096), (SHA_512, 8192)]
        assert await described(client) == {"carol": (0, both), "dave": (0, [(SHA_256, 4096)])}
        assert await described(client, "carol") == {"carol": (0, both)}
        assert await described(client, "x") == {"x": (ErrorCode.RESOURCE_NOT_FOUND, [])}
        assert await described(client, "carol", "carol") == {"carol": (ErrorCode.DUPLICATE_RESOURCE, [])}
        await client.close()


async def test_each_user_has_its_own_error() -> None:
    async with new_broker(users={}) as broker:
        client = await RawClient.connect(broker, listener="PLAINTEXT")
        upsertions = [
            upsertion("good"),
            upsertion("few", iterations=4095),
            upsertion("many", iterations=16385),
            upsertion(""),
            upsertion("unknown", mechanism=9),
            upsertion("twice"),
            upsertion("twice"),
        ]
        assert await change(client, upsertions, [("absent", SHA_256)]) == {
            "good": (0, None),
            "few": (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"),
            "many": (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations"),
            "": (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
            "unknown": (ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
            "twice": (
                ErrorCode.DUPLICATE_RESOURCE,
                "A user credential cannot be altered twice in the same request",
            ),
            "absent": (
                ErrorCode.RESOURCE_NOT_FOUND,
                "Attempt to delete a user credential that does not exist",
            ),
        }
        assert list(await described(client)) == ["good"]
        await client.close()


async def test_users_survive_a_restart_and_no_password_is_on_the_disk(tmp_path: Path) -> None:
    async with new_broker(data_dir=tmp_path) as broker:
        client = await RawClient.connect(broker, listener="PLAINTEXT")
        await change(client, [upsertion("carol", SHA_512, password="on-no-disk")])
        await client.close()
    assert not _is_on_disk(tmp_path, b"on-no-disk")
    assert not _is_on_disk(tmp_path, b"alice")
    async with new_broker(data_dir=tmp_path, users={}) as broker:
        client = await RawClient.connect(broker)
        assert (await log_in(client, sasl_client("SCRAM-SHA-512", "carol", "on-no-disk"))).error_code == 0
        await client.close()


def _is_on_disk(folder: Path, text: bytes) -> bool:
    return any(text in path.read_bytes() for path in folder.rglob("*") if path.is_file())


async def test_corrupt_users_stop_the_start(tmp_path: Path) -> None:
    async with Broker(tmp_path):
        pass
    (tmp_path / "aiokwire-security.json").write_text('{"scram": [{"user": "a", "mechanism": "SCRAM-SHA-256"}]}')
    with pytest.raises(StorageError, match="the users in the data directory are corrupt"):
        await Broker(tmp_path, listeners=[Listener()]).start()
