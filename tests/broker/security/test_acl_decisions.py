"""The authorizer against a naive reading of the rules, and the rules one by one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokwire.broker.configs import BrokerConfigs, static_configs
from aiokwire.broker.log import MemoryStorage
from aiokwire.broker.security import (
    Acl,
    AclFilter,
    AclOperation,
    Authorizer,
    PatternType,
    PermissionType,
    Principal,
    ResourceType,
    SecurityStore,
    checked_acl,
    new_authorizer,
)
from aiokwire.broker.security.acls import AclIndex, canonical_host
from aiokwire.errors import BrokerError, ConfigurationError, StorageError
from tests.broker.security.acting import ADMIN, ALICE, HOST, STANDARD, allow, deny, opened

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
PREFIXED = PatternType.PREFIXED
ANYTHING = AclFilter(1, 1, None, None, None, 1, 1)


def authorizer_with(acls: Iterable[Acl] = (), **options: bool) -> Authorizer:
    store = SecurityStore(MemoryStorage())
    authorizer = Authorizer(store, super_users=frozenset({"User:admin"}), **options)
    asyncio.run(authorizer.create(acls))
    return authorizer


def may(authorizer: Authorizer, operation: AclOperation, name: str, who: Principal = ALICE, host: str = HOST) -> bool:
    return authorizer.is_allowed(who, host, operation, TOPIC, name, is_asked=False)


# --- the model --------------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "ab", "abc", "b", "*"])
OPERATIONS = st.sampled_from([one for one in AclOperation if one is not AclOperation.ANY])
ACLS = st.builds(
    Acl,
    st.sampled_from([TOPIC, GROUP]),
    st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    NAMES,
    st.sampled_from(["User:alice", "User:bob", "User:*"]),
    st.sampled_from([HOST, "192.0.2.8", "*"]),
    OPERATIONS,
    st.sampled_from([PermissionType.ALLOW, PermissionType.DENY]),
)
IMPLYING = {
    DESCRIBE: {"DESCRIBE", "READ", "WRITE", "DELETE", "ALTER", "ALL"},
    AclOperation.DESCRIBE_CONFIGS: {"DESCRIBE_CONFIGS", "ALTER_CONFIGS", "ALL"},
}


def concerns(acl: Acl, name: str) -> bool:
    if acl.pattern_type is PatternType.PREFIXED:
        return name.startswith(acl.name)
    return acl.name in (name, "*")


def naive(acls: list[Acl], default: bool, operation: AclOperation, kind: ResourceType, name: str) -> bool:
    """The rules in the order of the documentation."""
    about = [acl for acl in acls if acl.resource_type is kind and concerns(acl, name)]
    if not about:
        return default
    mine = [acl for acl in about if acl.principal in ("User:alice", "User:*") and acl.host in (HOST, "*")]
    for acl in mine:
        if acl.permission is PermissionType.DENY and acl.operation in (operation, AclOperation.ALL):
            return False
    enough = IMPLYING.get(operation, {operation.name, "ALL"})
    return any(acl.permission is PermissionType.ALLOW and acl.operation.name in enough for acl in mine)


@given(st.lists(ACLS, max_size=8), st.booleans(), OPERATIONS, NAMES)
def test_each_decision_is_that_of_the_rules(acls: list[Acl], default: bool, operation: AclOperation, name: str) -> None:
    authorizer = authorizer_with(acls, allows_by_default=default)
    for kind in (TOPIC, GROUP):
        expected = naive(acls, default, operation, kind, name)
        for _ in range(2):  # computed, then remembered
            assert authorizer.is_allowed(ALICE, HOST, operation, kind, name, is_asked=False) is expected


@given(st.lists(ACLS, max_size=8), st.sets(st.integers(0, 7)), OPERATIONS, NAMES)
def test_removed_acls_decide_nothing(acls: list[Acl], gone: set[int], operation: AclOperation, name: str) -> None:
    authorizer = authorizer_with(acls)
    may(authorizer, operation, name)  # remembered
    removed = {acl for index, acl in enumerate(acls) if index in gone}
    asyncio.run(authorizer.delete(removed))
    left = [acl for acl in acls if acl not in removed]
    assert may(authorizer, operation, name) is naive(left, False, operation, TOPIC, name)
    assert authorizer.select(ANYTHING) == list(dict.fromkeys(left))


@given(st.lists(ACLS, max_size=6))
def test_any_topic_is_allowed_if_some_name_is(acls: list[Acl]) -> None:
    """Kafka looks at patterns alone, not at names that several denials cover together."""
    authorizer = authorizer_with(acls)
    names = ["a", "ab", "abc", "abcd", "b", "bc", "c", "hardcode"]
    some = any(naive(acls, False, WRITE, TOPIC, name) for name in names)
    found = authorizer.is_allowed_any(ALICE, HOST, WRITE, TOPIC)
    assert found or not some


@given(st.lists(ACLS, max_size=8), NAMES, st.sampled_from([1, 2, 3, 4]))
def test_filters_select_what_java_selects(acls: list[Acl], name: str, pattern: int) -> None:
    index = AclIndex(acls)
    found = index.select(AclFilter(TOPIC, pattern, name, None, None, 1, 1))
    for acl in index:
        same = acl.name == name and pattern in (1, 2, acl.pattern_type)
        by_pattern = pattern == 2 and concerns(acl, name)
        assert (acl in found) is (acl.resource_type is TOPIC and (same or by_pattern))


# --- single rules -----------------------------------------------------------------------------------------------------


def test_a_super_user_may_do_what_an_acl_denies() -> None:
    authorizer = authorizer_with([deny(AclOperation.ALL, TOPIC, "*", principal="User:*")])
    assert may(authorizer, WRITE, "t", ADMIN)
    assert authorizer.is_allowed_any(ADMIN, HOST, WRITE, TOPIC)
    assert not may(authorizer, WRITE, "t", ALICE)


def test_without_an_acl_everything_is_denied() -> None:
    assert not may(authorizer_with(), READ, "t")


def test_everyone_is_allowed_what_no_acl_is_about_by_config() -> None:
    authorizer = authorizer_with([allow(READ, TOPIC, "t", principal="User:bob")], allows_by_default=True)
    assert may(authorizer, WRITE, "other")
    assert not may(authorizer, WRITE, "t"), "an ACL is about t, and it does not allow alice to write"


def test_a_denied_write_does_not_deny_describing() -> None:
    authorizer = authorizer_with([allow(READ, TOPIC, "t"), deny(WRITE, TOPIC, "t")])
    assert may(authorizer, DESCRIBE, "t")
    assert not may(authorizer, WRITE, "t")


def test_a_prefix_allows_and_a_name_denies() -> None:
    authorizer = authorizer_with(
        [allow(READ, TOPIC, "team-", pattern=PatternType.PREFIXED), deny(READ, TOPIC, "team-secret")]
    )
    assert may(authorizer, READ, "team-1")
    assert not may(authorizer, READ, "team-secret")
    assert not may(authorizer, READ, "team")


def test_the_wildcard_as_a_prefix_is_a_common_character() -> None:
    authorizer = authorizer_with([allow(READ, TOPIC, "*", pattern=PatternType.PREFIXED)])
    assert not may(authorizer, READ, "t")


@pytest.mark.parametrize(
    ("written", "seen"),
    [("::1", "0:0:0:0:0:0:0:1"), ("192.0.2.7", "::ffff:192.0.2.7"), ("host.example", "host.example")],
)
def test_hosts_are_compared_as_addresses(written: str, seen: str) -> None:
    assert canonical_host(written) == canonical_host(seen)
    authorizer = authorizer_with([allow(READ, TOPIC, "t", host=written)])
    assert may(authorizer, READ, "t", host=seen)
    assert not may(authorizer, READ, "t", host="198.51.100.1")


@pytest.mark.parametrize(
    ("acls", "expected"),
    [
        ([], False),
        ([allow(WRITE, TOPIC, "t")], True),
        ([allow(READ, TOPIC, "t")], False),
        ([allow(WRITE, TOPIC, "t"), deny(WRITE, TOPIC, "t")], False),
        ([allow(WRITE, TOPIC, "*"), deny(WRITE, TOPIC, "t")], True),
        ([allow(WRITE, TOPIC, "t"), deny(WRITE, TOPIC, "*")], False),
        ([allow(WRITE, TOPIC, "tea", pattern=PREFIXED), deny(WRITE, TOPIC, "te", pattern=PREFIXED)], False),
        ([allow(WRITE, TOPIC, "te", pattern=PatternType.PREFIXED), deny(WRITE, TOPIC, "te")], True),
        ([allow(WRITE, TOPIC, "t", principal="User:bob")], False),
        ([allow(AclOperation.ALL, TOPIC, "t", principal="User:*")], True),
    ],
)  # fmt: skip
def test_writing_to_any_topic(acls: list[Acl], expected: bool) -> None:
    assert authorizer_with(acls).is_allowed_any(ALICE, HOST, WRITE, TOPIC) is expected


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ((4, 3, "my-cluster", "User:a", "*", 3, 3), "kafka-cluster"),
        ((2, 3, "", "User:a", "*", 3, 3), "empty"),
        ((1, 3, "t", "User:a", "*", 3, 3), "resourceType ANY"),
        ((99, 3, "t", "User:a", "*", 3, 3), "resourceType UNKNOWN"),
        ((2, 2, "t", "User:a", "*", 3, 3), "patternType MATCH"),
        ((2, 3, "t", "User:a", "*", 1, 3), "operation ANY"),
        ((2, 3, "t", "User:a", "*", 3, 1), "permissionType ANY"),
        ((2, 3, "t", "alice", "*", 3, 3), "principal"),
    ],
)
def test_an_acl_that_cannot_exist_is_refused(given: tuple[int, int, str, str, str, int, int], reason: str) -> None:
    with pytest.raises(BrokerError, match=reason):
        checked_acl(*given)


# --- configs, the store, the log --------------------------------------------------------------------------------------


def test_no_authorizer_is_configured_by_default() -> None:
    configs = BrokerConfigs(static_configs({}), node_id=1)
    assert new_authorizer(configs, SecurityStore(MemoryStorage())) is None


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"authorizer_class_name": "my.Authorizer"}, "must be org.apache.kafka"),
        ({"authorizer_class_name": STANDARD, "super_users": "admin"}, "User:admin"),
    ],
)
def test_a_wrong_authorizer_is_named_at_the_start(options: dict[str, str], reason: str) -> None:
    configs = BrokerConfigs(static_configs(options), node_id=1)
    with pytest.raises(ConfigurationError, match=reason):
        new_authorizer(configs, SecurityStore(MemoryStorage()))


def test_acls_are_kept_across_a_restart() -> None:
    storage = MemoryStorage()
    state = opened(storage)
    given = [allow(READ, TOPIC, "t"), deny(WRITE, GROUP, "g", host="::1", pattern=PatternType.PREFIXED)]
    assert state.authorizer is not None
    asyncio.run(state.authorizer.create(given))
    state.close()
    again = opened(storage)
    assert again.authorizer is not None
    assert again.authorizer.select(ANYTHING) == given
    assert may(again.authorizer, READ, "t")
    again.close()


def test_a_corrupt_acl_stops_the_start() -> None:
    store = SecurityStore(MemoryStorage())
    asyncio.run(store.replace("acls", [{"resource_type": "TOPIC"}]))
    with pytest.raises(StorageError, match="corrupt"):
        Authorizer(store).load()


async def test_denied_requests_are_logged_a_few_times_for_each_principal(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="aiokwire.broker.security.authorizer")
    authorizer = Authorizer(SecurityStore(MemoryStorage()))
    for index in range(30):
        authorizer.is_allowed(Principal("User", "eve\n"), HOST, READ, TOPIC, f"t\x1b{index}")
    authorizer.is_allowed(ALICE, HOST, READ, TOPIC, "hidden", is_asked=False)
    authorizer.audit.flush()
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 11
    assert lines[0] == r"User:eve\n was denied READ on TOPIC 't\x1b0' from 192.0.2.7: no ACL is about the resource"
    assert lines[-1] == r"User:eve\n was denied 20 more times within 60 s (not logged individually)"


async def test_allowed_requests_are_logged_on_demand_with_their_acl(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="aiokwire.broker.security.authorizer")
    authorizer = Authorizer(SecurityStore(MemoryStorage()))
    await authorizer.create([allow(READ, TOPIC, "t")])
    assert authorizer.is_allowed(ALICE, HOST, READ, TOPIC, "t")
    assert "User:alice was allowed READ on TOPIC 't'" in caplog.text
    assert "ALLOW READ on TOPIC LITERAL 't' for User:alice from *" in caplog.text
