"""Read the message definitions in `kafka-clients` jars, and join those of two releases.

Only facts are taken: names, types, versions, flexible ranges, keys, defaults, nullability,
ignorable, tags, listeners. Kafka 4.0 dropped old versions from its definitions; a release before
that still has them, so the older release supplies exactly the versions that the newer one lacks.
"""

from __future__ import annotations

import json
import re
import zipfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

NO_END = 0x7FFF
_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)
_FOLDER = "common/message/"


@dataclass(frozen=True)
class Versions:
    """Both ends included; empty when `max` is below `min`."""

    min: int
    max: int

    def __bool__(self) -> bool:
        return self.min <= self.max

    def __and__(self, other: Versions) -> Versions:
        return Versions(max(self.min, other.min), min(self.max, other.max))

    def __or__(self, other: Versions) -> Versions:
        """The union of two adjacent or overlapping ranges."""
        if not self or not other:
            return self or other
        if max(self.min, other.min) > min(self.max, other.max) + 1:
            raise ValueError(f"versions {self} and {other} leave a gap")
        return Versions(min(self.min, other.min), max(self.max, other.max))

    def __str__(self) -> str:
        if self.min == self.max:
            return str(self.min)
        return f"{self.min}+" if self.max == NO_END else f"{self.min}-{self.max}"


NONE = Versions(0, -1)


@dataclass(frozen=True)
class Field:
    """One field of a struct.

    `kind` is a primitive's name in the definitions, or that of a struct.
    """

    name: str
    kind: str
    is_array: bool
    versions: Versions
    nullable: Versions
    default: Any
    ignorable: bool
    tag: int | None
    fields: tuple[Field, ...]

    @property
    def is_struct(self) -> bool:
        return self.kind[0].isupper()


@dataclass(frozen=True)
class Message:
    """One definition file: a request, a response, or data."""

    name: str
    role: str
    api_key: int | None
    versions: Versions
    served_from: int | None
    flexible_from: int
    unstable_from: int | None
    listeners: tuple[str, ...]
    fields: tuple[Field, ...]
    common: dict[str, tuple[Field, ...]] = field(default_factory=dict)


def read_jar(path: Path) -> dict[str, Message]:
    """Return all messages of one release, by name."""
    messages = {}
    with zipfile.ZipFile(path) as jar:
        for entry in jar.namelist():
            if entry.startswith(_FOLDER) and entry.endswith(".json"):
                message = _message(json.loads(_COMMENT.sub("", jar.read(entry).decode())))
                messages[message.name] = message
    if not messages:
        raise ValueError(f"{path} holds no message definitions")
    return messages


def join(newer: dict[str, Message], older: dict[str, Message]) -> dict[str, Message]:
    """Return the definitions of `newer` with the stable versions that only `older` has."""
    unstable = {message.api_key for message in older.values() if message.unstable_from is not None}
    stable = {name: message for name, message in older.items() if message.api_key not in unstable - {None}}
    return {name: _join_message(message, stable.get(name)) for name, message in newer.items()}


def snake_case(name: str) -> str:
    """`TopicData` to topic_data, `isKRaftController` to is_kraft_controller."""
    name = name.replace("KRaft", "Kraft")
    name = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    return re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name).lower()


def _versions(text: str | None) -> Versions:
    if text is None or text == "none":
        return NONE
    if text.endswith("+"):
        return Versions(int(text[:-1]), NO_END)
    low, _, high = text.partition("-")
    return Versions(int(low), int(high or low))


def _message(raw: dict[str, Any]) -> Message:
    versions = _versions(raw["validVersions"])
    flexible = _versions(raw.get("flexibleVersions"))
    return Message(
        name=raw["name"],
        role=raw["type"],
        api_key=raw.get("apiKey"),
        versions=versions,
        served_from=versions.min if versions else None,
        flexible_from=flexible.min if flexible else versions.max + 1,
        unstable_from=versions.max if raw.get("latestVersionUnstable") else None,
        listeners=tuple(raw.get("listeners", ())),
        fields=tuple(map(_field, raw.get("fields", ()))),
        common={item["name"]: tuple(map(_field, item["fields"])) for item in raw.get("commonStructs", ())},
    )


def _field(raw: dict[str, Any]) -> Field:
    kind = raw["type"]
    tag = raw.get("tag")
    versions = _versions(raw["versions"])
    if tag is not None and _versions(raw["taggedVersions"]) != versions:
        raise ValueError(f"{raw['name']} is tagged in some of its versions only")
    return Field(
        name=snake_case(raw["name"]),
        kind=kind.removeprefix("[]"),
        is_array=kind.startswith("[]"),
        versions=versions,
        nullable=_versions(raw.get("nullableVersions")),
        default=raw.get("default"),
        ignorable=raw.get("ignorable", False),
        tag=None if tag is None else int(tag),
        fields=tuple(map(_field, raw.get("fields", ()))),
    )


def _join_message(newer: Message, older: Message | None) -> Message:
    if older is None:
        return newer
    if not newer.versions:
        return replace(older, served_from=None, listeners=newer.listeners)
    dropped = Versions(older.versions.min, newer.versions.min - 1)
    if not dropped:
        return newer
    kept = Versions(newer.versions.min, NO_END)
    flexible_from = newer.flexible_from
    if older.flexible_from < newer.versions.min:
        flexible_from = older.flexible_from
    return replace(
        newer,
        versions=dropped | newer.versions,
        flexible_from=flexible_from,
        fields=_join_fields(newer.fields, older.fields, kept, dropped),
        common={
            name: _join_fields(fields, older.common.get(name, ()), kept, dropped)
            for name, fields in (older.common | newer.common).items()
        },
    )


def _join_fields(
    newer: tuple[Field, ...], older: tuple[Field, ...], kept: Versions, dropped: Versions
) -> tuple[Field, ...]:
    """Return the newer fields in their order.

    A field that only the older release has follows its predecessor in that release.
    """
    before = {item.name: item for item in older}
    joined = [_join_field(item, before.get(item.name), kept, dropped) for item in newer]
    place = 0
    for item in older:
        names = [other.name for other in joined]
        if item.name in names:
            place = names.index(item.name) + 1
        elif item.versions & dropped:
            joined.insert(place, _join_field(item, item, NONE, dropped))
            place += 1
    return tuple(joined)


def _join_field(newer: Field, older: Field | None, kept: Versions, dropped: Versions) -> Field:
    if older is None:
        return replace(newer, versions=newer.versions & kept, nullable=newer.nullable & kept)
    if (newer.kind, newer.is_array, newer.tag) != (older.kind, older.is_array, older.tag):
        raise ValueError(f"{newer.name} changed its type between the releases")
    return replace(
        newer,
        versions=newer.versions & kept | older.versions & dropped,
        nullable=newer.nullable & kept | older.nullable & dropped,
        fields=_join_fields(newer.fields, older.fields, kept, dropped),
    )
