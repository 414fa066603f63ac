"""Kafka's own tools against the embedded broker: ACLs, quotas, users and delegation tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aiokwire import Admin
from aiokwire.admin import (
    AclBinding,
    AclOperation,
    AclResourceType,
    ClientQuotaEntity,
    PatternType,
    QuotaName,
    ScramCredentialInfo,
    ScramMechanism,
)
from aiokwire.broker import Listener
from aiokwire.testing import ThreadedBroker
from integration.kafka import JavaTools

_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule required"
PASSWORD = "the-administrator-s"
Tool = Callable[..., str]


@pytest.fixture(scope="module")
def secure() -> Iterator[ThreadedBroker]:
    with ThreadedBroker(
        listeners=[Listener(protocol="SASL_PLAINTEXT", mechanisms=["SCRAM-SHA-256", "SCRAM-SHA-512"])],
        users={"admin": PASSWORD},
        topics={"orders": 1},
        authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        super_users="User:admin",
        delegation_token_secret_key="key",
    ) as running:
        yield running


def config_file(path: Path, login: str, mechanism: str = "SCRAM-SHA-256") -> Path:
    path.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\nsasl.jaas.config={_MODULE} {login};\n"
    )
    return path


@pytest.fixture
def tool(secure: ThreadedBroker, tmp_path: Path) -> Tool:
    """Run a tool of Kafka as the administrator, or with another file of settings."""
    admin = config_file(tmp_path / "admin.properties", f'username="admin" password="{PASSWORD}"')

    def run(main: str, *arguments: str, config: Path = admin) -> str:
        fixed = ("--bootstrap-server", secure.bootstrap_servers, "--command-config", str(config))
        return JavaTools(secure.bootstrap_servers).run(main, *fixed, *arguments).checked().stdout

    return run


def admin_of(secure: ThreadedBroker) -> Admin:
    return Admin(
        secure.bootstrap_servers,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="SCRAM-SHA-512",
        sasl_plain_username="admin",
        sasl_plain_password=PASSWORD,
    )


async def test_kafka_acls_adds_lists_and_removes(secure: ThreadedBroker, tool: Tool) -> None:
    main = "org.apache.kafka.tools.AclCommand"
    tool(main, "--add", "--allow-principal", "User:alice", "--consumer", "--topic", "orders", "--group", "billing")
    tool(main, "--add", "--deny-principal", "User:*", "--deny-host", "10.0.0.1", "--operation", "write", "--topic", "o",
         "--resource-pattern-type", "prefixed")  # fmt: skip
    async with admin_of(secure) as admin:
        found = await admin.describe_acls()
    assert AclBinding("User:alice", AclOperation.READ, AclResourceType.GROUP, "billing") in found
    assert (found[0].resource_name, found[0].pattern_type, found[0].host) == ("o", PatternType.PREFIXED, "10.0.0.1")
    listed = tool(main, "--list", "--topic", "orders", "--resource-pattern-type", "match")
    assert "User:alice" in listed
    assert "10.0.0.1" in listed
    tool(main, "--remove", "--force", "--topic", "o", "--resource-pattern-type", "prefixed")
    tool(main, "--remove", "--force", "--topic", "orders", "--group", "billing")
    async with admin_of(secure) as admin:
        assert await admin.describe_acls() == []


async def test_kafka_configs_sets_quotas_and_users(secure: ThreadedBroker, tool: Tool, tmp_path: Path) -> None:
    main = "kafka.admin.ConfigCommand"
    tool(main, "--alter", "--entity-type", "users", "--entity-name", "alice", "--entity-type", "clients",
         "--entity-default", "--add-config", "producer_byte_rate=1024,request_percentage=12.5")  # fmt: skip
    tool(main, "--alter", "--entity-type", "users", "--entity-name", "bob", "--add-config",
         "SCRAM-SHA-256=[iterations=8192,password=sesame]")  # fmt: skip
    entity = ClientQuotaEntity(user="alice", client_id=QuotaName.DEFAULT)
    async with admin_of(secure) as admin:
        assert await admin.describe_client_quotas() == {
            entity: {"producer_byte_rate": 1024.0, "request_percentage": 12.5}
        }
        users = await admin.describe_user_scram_credentials(["bob"])
        assert users["bob"] == (ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 8192),)
        described = tool(main, "--describe", "--entity-type", "users", "--entity-name", "alice", "--entity-type",
                         "clients", "--entity-default")  # fmt: skip
        assert "producer_byte_rate=1024.0" in described
        assert "SCRAM-SHA-256=iterations=8192" in tool(main, "--describe", "--entity-type", "users")
        bob = config_file(tmp_path / "bob.properties", 'username="bob" password="sesame"')
        tool("org.apache.kafka.tools.TopicCommand", "--list", config=bob)
        tool(main, "--alter", "--entity-type", "users", "--entity-name", "alice", "--entity-type", "clients",
             "--entity-default", "--delete-config", "producer_byte_rate,request_percentage")  # fmt: skip
        tool(main, "--alter", "--entity-type", "users", "--entity-name", "bob", "--delete-config", "SCRAM-SHA-256")
        assert await admin.describe_client_quotas() == {}
        assert "bob" not in (await admin.describe_user_scram_credentials()).succeeded


async def test_kafka_delegation_tokens_creates_one_that_java_logs_in_with(
    secure: ThreadedBroker, tool: Tool, tmp_path: Path
) -> None:
    main = "org.apache.kafka.tools.DelegationTokenCommand"
    created = tool(main, "--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob")
    token_id, hmac = re.findall(r"^(\S{22})\s+(\S{88})\s", created, re.MULTILINE)[0]
    token = config_file(tmp_path / "token.properties", f'username="{token_id}" password="{hmac}" tokenauth="true"')
    assert "orders" in tool("org.apache.kafka.tools.TopicCommand", "--list", config=token)
    assert token_id in tool(main, "--describe", "--owner-principal", "User:admin")
    tool(main, "--renew", "--renew-time-period", "60000", "--hmac", hmac)
    async with admin_of(secure) as admin:
        (described,) = await admin.describe_delegation_token()
        assert (described.token_id, described.renewers) == (token_id, ("User:bob",))
        assert described.password.reveal() == hmac
        tool(main, "--expire", "--expiry-time-period", "-1", "--hmac", hmac)
        assert await admin.describe_delegation_token() == []
