"""The verbs of security against a broker with an authorizer: ACLs, users, quotas, tokens."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from aiokwire.broker import Listener
from aiokwire.cli.main import cli
from aiokwire.testing import ThreadedBroker

Run = Callable[..., Result]
PASSWORD = "the administrator's"


@pytest.fixture(scope="module")
def secure() -> Iterator[str]:
    listener = Listener(protocol="SASL_PLAINTEXT", mechanisms=["SCRAM-SHA-256", "SCRAM-SHA-512"])
    with ThreadedBroker(
        listeners=[listener],
        users={"admin": PASSWORD},
        authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        super_users="User:admin",
        delegation_token_secret_key="key",
    ) as broker:
        yield broker.bootstrap_servers


def login_file(path: Path, bootstrap: str, user: str, password: str) -> Path:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    path.touch(0o600)
    path.write_text(
        f"bootstrap.servers={bootstrap}\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"
        f'sasl.jaas.config={module} username="{user}" password="{password}";\n'
    )
    return path


@pytest.fixture
def act(secure: str, tmp_path: Path) -> Run:
    """Call the command line as the administrator."""
    config = login_file(tmp_path / "admin.properties", secure, "admin", PASSWORD)

    def call(*arguments: str | Path, config: Path = config, answer: str = "", **environment: str) -> Result:
        given = ["--command-config", str(config), *map(str, arguments)]
        return CliRunner().invoke(cli, given, input=answer, env=environment)

    return call


def rows(result: Result) -> list[dict[str, object]]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


# --- ACLs -------------------------------------------------------------------------------------------------------------


def test_acls_are_added_listed_and_removed(act: Run) -> None:
    added = act("acls", "add", "--allow-principal", "User:alice", "-o", "read", "-o", "DESCRIBE", "-t", "orders")
    assert added.exit_code == 0, added.output
    assert "added allow User:alice read topic 'orders' from *\n" in added.stdout
    act("acls", "add", "--deny-principal", "User:*", "--deny-host", "10.0.0.1", "-g", "g-", "--prefixed")
    found = rows(act("acls", "list", "--principal", "User:alice", "--json"))
    assert [(one["operation"], one["resource_name"]) for one in found] == [("read", "orders"), ("describe", "orders")]
    (denied,) = rows(act("acls", "list", "-g", "g-1", "--json"))  # its prefix affects the group
    assert denied == {
        "permission": "deny", "principal": "User:*", "operation": "all", "resource_type": "group",
        "resource_name": "g-", "pattern_type": "prefixed", "host": "10.0.0.1",
    }  # fmt: skip
    plain = act("acls", "list", "--permission", "deny").stdout.splitlines()
    assert plain[0].split("\t") == ["permission", "principal", "operation", "resource", "name", "pattern", "host"]
    assert plain[1].split("\t") == ["deny", "User:*", "all", "group", "g-", "prefixed", "10.0.0.1"]
    removed = act("acls", "remove", "--principal", "User:alice", "-o", "read", "--yes")
    assert removed.stdout == "removed allow User:alice read topic 'orders' from *\n"
    kept = act("acls", "remove", "--all", answer="n\n")
    assert kept.exit_code == 1
    assert len(rows(act("acls", "list", "--json"))) == 2
    assert act("acls", "remove", "--all", "-y").exit_code == 0
    assert "no ACL matches" in act("acls", "remove", "--all", "-y").stderr


def test_a_producer_and_a_consumer_get_what_they_need(act: Run) -> None:
    names = ("-t", "orders", "-g", "billing", "--transactional-id", "tx")
    assert act("acls", "add", "--allow-principal", "User:p", "--producer", *names).exit_code == 0
    assert act("acls", "add", "--allow-principal", "User:c", "--consumer", *names).exit_code == 0

    def of(principal: str) -> set[tuple[object, object]]:
        found = rows(act("acls", "list", "--principal", principal, "--json"))
        return {(one["resource_type"], one["operation"]) for one in found}

    assert of("User:p") == {
        ("topic", "write"), ("topic", "describe"), ("topic", "create"), ("transactional_id", "write"),
        ("transactional_id", "describe"),
    }  # fmt: skip
    assert of("User:c") == {("topic", "read"), ("topic", "describe"), ("group", "read")}
    act("acls", "remove", "--all", "--yes")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("add", "-t", "orders"), "--allow-principal"),
        (("add", "--allow-principal", "User:a"), "name a resource"),
        (("add", "--allow-principal", "User:a", "-t", "x", "--producer", "-o", "read"), "leave out --operation"),
        (("remove",), "select the ACLs"),
        (("remove", "--all", "-t", "x"), "select the ACLs"),
    ],
)
def test_nonsense_is_refused_before_a_broker_is_asked(act: Run, arguments: tuple[str, ...], complaint: str) -> None:
    result = act("acls", *arguments)
    assert result.exit_code == 2
    assert complaint in result.stderr


def test_a_principal_without_a_type_is_refused(act: Run) -> None:
    result = act("acls", "add", "--allow-principal", "alice", "-t", "orders")
    assert result.exit_code == 1
    assert "User:alice" in result.stderr


# --- users ------------------------------------------------------------------------------------------------------------


def test_users_are_added_listed_and_removed(act: Run, secure: str, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("sesame\n")
    added = act("users", "add", "alice", "--password-file", password)
    assert added.stdout == "added alice (SCRAM-SHA-256, SCRAM-SHA-512)\n", added.output
    described = rows(act("users", "list", "alice", "--json"))
    assert described == [
        {"user": "alice", "mechanism": "SCRAM-SHA-256", "iterations": 4096},
        {"user": "alice", "mechanism": "SCRAM-SHA-512", "iterations": 4096},
    ]
    hers = login_file(tmp_path / "alice.properties", secure, "alice", "sesame")
    assert act("topics", "list", config=hers).exit_code == 0
    assert act("users", "remove", "alice", "-m", "SCRAM-SHA-256", "--yes").stdout == "removed alice\n"
    assert act("topics", "list", config=hers).exit_code == 1
    assert [one["mechanism"] for one in rows(act("users", "list", "--json")) if one["user"] == "alice"] == [
        "SCRAM-SHA-512"
    ]
    assert act("users", "remove", "alice", "--yes").exit_code == 0
    missing = act("users", "remove", "alice", "--yes")
    assert missing.exit_code == 1
    assert "RESOURCE_NOT_FOUND" in missing.stderr


def test_a_password_comes_from_the_environment_a_prompt_or_standard_input(
    act: Run, secure: str, tmp_path: Path
) -> None:
    for number, (options, answer, environment) in enumerate(
        [
            ((), "", {"AIOKWIRE_USER_PASSWORD": "sesame"}),
            ((), "sesame\nsesame\n", {}),
            (("--password-file", "-"), "sesame\n", {}),
        ]
    ):
        name = f"user-{number}"
        added = act("users", "add", name, "-m", "SCRAM-SHA-256", *options, answer=answer, **environment)
        assert added.exit_code == 0, added.output
        assert "sesame" not in added.output
        config = login_file(tmp_path / f"{name}.properties", secure, name, "sesame")
        assert act("topics", "list", config=config).exit_code == 0


def test_an_empty_password_file_is_refused(act: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    result = act("users", "add", "alice", "--password-file", tmp_path / "empty")
    assert result.exit_code == 2
    assert "is empty" in result.stderr


# --- quotas -----------------------------------------------------------------------------------------------------------


def test_quotas_are_set_listed_and_removed(act: Run) -> None:
    entity_of_alice = ("--user", "alice", "--client-id-defaults")
    done = act("quotas", "set", *entity_of_alice, "producer_byte_rate=1m", "request_percentage=12.5")
    assert done.exit_code == 0, done.output
    act("quotas", "set", "--ip-defaults", "connection_creation_rate=100")
    (entity,) = rows(act("quotas", "list", "--user", "alice", "--json"))
    assert entity == {
        "user": "alice", "client_id": "<default>", "ip": None,
        "quotas": {"producer_byte_rate": 1048576.0, "request_percentage": 12.5},
    }  # fmt: skip
    plain = act("quotas", "list", "--ip-defaults").stdout.splitlines()
    assert plain == ["user\tclient id\tip\tquota\tvalue", "-\t-\t<default>\tconnection_creation_rate\t100"]
    removed = act("quotas", "remove", "request_percentage", *entity_of_alice, "--yes")
    assert removed.exit_code == 0, removed.output
    (entity,) = rows(act("quotas", "list", "--user", "alice", "--json"))
    assert entity["quotas"] == {"producer_byte_rate": 1048576.0}
    assert act("quotas", "remove", *entity_of_alice, answer="n\n").exit_code == 1
    assert act("quotas", "remove", *entity_of_alice, "-y").exit_code == 0
    assert "has no such quota" in act("quotas", "remove", *entity_of_alice, "-y").stderr
    act("quotas", "remove", "--ip-defaults", "-y")
    assert rows(act("quotas", "list", "--json")) == []


@pytest.mark.parametrize(
    ("arguments", "complaint", "status"),
    [
        (("set", "producer_byte_rate=1"), "name the entity", 2),
        (("set", "--user", "a", "speed=1"), "is not a quota", 2),
        (("set", "--user", "a", "producer_byte_rate=fast"), "producer_byte_rate", 2),
        (("set", "--user", "a", "--user-defaults", "producer_byte_rate=1"), "not both", 2),
        (("set", "--user", "a", "request_percentage=0"), "greater than 0", 1),
        (("remove", "--user", "a", "speed"), "is not a quota", 2),
    ],
)
def test_a_quota_that_makes_no_sense_is_refused(
    act: Run, arguments: tuple[str, ...], complaint: str, status: int
) -> None:
    result = act("quotas", *arguments)
    assert (result.exit_code, "Traceback" in result.output) == (status, False)
    assert complaint in result.stderr


# --- delegation tokens ------------------------------------------------------------------------------------------------


def test_tokens_are_created_listed_renewed_and_expired(act: Run) -> None:
    (token,) = rows(act("tokens", "create", "--renewer", "User:bob", "--max-lifetime", "2d", "--json"))
    assert (token["owner"], token["renewers"]) == ("User:admin", "User:bob")
    assert token["hmac"]
    (listed,) = rows(act("tokens", "list", "--owner", "User:admin", "--json"))
    assert listed["token_id"] == token["token_id"]
    assert "hmac" not in listed
    token_id = str(token["token_id"])
    renewed = act("tokens", "renew", "--period", "1h", token_id)
    assert renewed.stdout.startswith(f"renewed {token_id} until 20"), renewed.output
    assert act("tokens", "expire", token_id, answer="n\n").exit_code == 1
    assert "expires at 20" in act("tokens", "expire", "--yes", "--period", "1h", token_id).stdout
    assert act("tokens", "expire", "--yes", token_id).stdout == f"{token_id} expires now\n"
    assert "does not exist, or is not one that you own" in act("tokens", "expire", "--yes", token_id).stderr
    assert act("tokens", "list").stdout.splitlines()[1:] == []


def test_a_token_can_be_written_to_a_file_for_logins(act: Run, tmp_path: Path) -> None:
    file = tmp_path / "token.properties"
    created = act("tokens", "create", "--properties", file, "--json")
    assert created.exit_code == 0, created.output
    assert "hmac" not in json.loads(created.stdout)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert act("topics", "list", config=file).exit_code == 0
    refused = act("tokens", "list", config=file)
    assert "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED" in refused.stderr
    again = act("tokens", "create", "--properties", file)
    assert again.exit_code == 1
    assert "File exists" in again.stderr


def test_a_lifetime_needs_a_unit(act: Run) -> None:
    result = act("tokens", "create", "--max-lifetime", "7")
    assert result.exit_code == 2
    assert "must have a unit" in result.stderr
