"""Methods and tables that replace a search of a message's fields by name at run time.

Response.error_codes()            its own error code and those of the entries in its lists
Request.broker_wait_ms()          how long it lets the broker wait before it responds
Request.coordinator_key()         the group or transactional id whose coordinator it is for
Request.FIRST_VERSION_WITH        fields that did not exist in its first version
"""

from __future__ import annotations

from collections.abc import Iterator

from tools.protocol_generator.definitions import Field, Message, Versions
from tools.protocol_generator.fields import is_optional

# Fields that limit how long the broker may wait before it responds, in milliseconds.
WAITS = ("max_wait_ms", "timeout_ms", "rebalance_timeout_ms")
# Requests to one coordinator, and their field that names the group or transaction. Requests about several groups,
# such as DescribeGroups, are not among them: their responses have an error for each group.
COORDINATED = {
    "InitProducerIdRequest": "transactional_id",
    "AddPartitionsToTxnRequest": "transactional_id",
    "AddOffsetsToTxnRequest": "transactional_id",
    "EndTxnRequest": "transactional_id",
    "TxnOffsetCommitRequest": "group_id",
    "OffsetCommitRequest": "group_id",
    "OffsetFetchRequest": "group_id",
    "OffsetDeleteRequest": "group_id",
    "JoinGroupRequest": "group_id",
    "SyncGroupRequest": "group_id",
    "HeartbeatRequest": "group_id",
    "LeaveGroupRequest": "group_id",
    "ConsumerGroupHeartbeatRequest": "group_id",
}
RENAMED = "v3_and_below_"  # how AddPartitionsToTxn calls the fields of its older versions


def accessors(message: Message) -> list[str]:
    """Return the methods, each with an empty line above it."""
    if message.role == "response":
        return _error_codes(message)
    return [*_broker_wait(message), *_coordinator_key(message)] if message.role == "request" else []


def later_fields(message: Message) -> dict[str, int]:
    """Return the fields that came after the first version, with the version that brought them."""
    first: dict[str, int] = {}
    for item, versions in _all_fields(message):
        first[item.name] = min(versions.min, first.get(item.name, versions.min))
    return {name: version for name, version in first.items() if version > message.versions.min}


def struct_definitions(message: Message) -> dict[str, tuple[Field, ...]]:
    """Return the fields of each struct of a message, by the struct's name."""
    found = dict(message.common)

    def visit(fields: tuple[Field, ...]) -> None:
        for item in fields:
            if item.fields:
                found[item.kind] = item.fields
                visit(item.fields)

    for fields in (*message.common.values(), message.fields):
        visit(fields)
    return found


def _all_fields(message: Message) -> Iterator[tuple[Field, Versions]]:
    definitions = struct_definitions(message)

    def visit(fields: tuple[Field, ...], within: Versions) -> Iterator[tuple[Field, Versions]]:
        for item in fields:
            if versions := item.versions & within:
                yield item, versions
                if item.is_struct:
                    yield from visit(definitions[item.kind], versions)

    return visit(message.fields, message.versions)


def _lists_with(message: Message, name: str) -> Iterator[Field]:
    """Yield the top-level lists whose entries have a field of this name."""
    definitions = struct_definitions(message)
    for item in _own_fields(message):
        if item.is_struct and item.is_array:
            inside = item.versions & message.versions
            if any(each.name == name and each.versions & inside for each in definitions[item.kind]):
                yield item


def _own_fields(message: Message) -> list[Field]:
    return [item for item in message.fields if item.versions & message.versions]


def _error_codes(message: Message) -> list[str]:
    body = ["    yield self.error_code"] if any(item.name == "error_code" for item in _own_fields(message)) else []
    for item in _lists_with(message, "error_code"):
        entries = f"self.{item.name} or ()" if is_optional(item) else f"self.{item.name}"
        body += [f"    for entry in {entries}:", "        yield entry.error_code"]
    return ["", "def error_codes(self) -> Iterator[int]:", *body] if body else []


def _broker_wait(message: Message) -> list[str]:
    names = [item.name for item in _own_fields(message) if item.name in WAITS]
    if not names:
        return []
    values = ", ".join(f"self.{name}" for name in names)
    return ["", "def broker_wait_ms(self) -> int:", f"    return max({values}, 0)"]


def _coordinator_key(message: Message) -> list[str]:
    name = COORDINATED.get(message.name)
    if name is None:
        return []
    parts = [
        f"self.{item.name}" + (' or ""' if is_optional(item) else "")
        for item in _own_fields(message)
        if item.name.removeprefix(RENAMED) == name
    ]
    parts += [f'next((entry.{name} for entry in self.{item.name}), "")' for item in _lists_with(message, name)]
    return ["", "def coordinator_key(self) -> str:", f"    return {' or '.join(parts)}"]
