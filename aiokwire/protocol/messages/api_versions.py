"""ApiVersions (key 18), versions 0-4, flexible from 3.

Generated from the definitions of Kafka 4.3.1 and 3.9.1 by `make generate`; do not edit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Self

from aiokwire.protocol._codec import PlainReader, PlainWriter
from aiokwire.protocol.api import (
    EMPTY,
    Request,
    Response,
    Struct,
    UnknownTags,
    VersionRange,
)
from aiokwire.protocol.api_key import ApiKey


class ApiVersion(Struct):
    """Stands in `ApiVersionsResponse.api_keys`."""

    __slots__ = ("api_key", "min_version", "max_version", "unknown_tags")

    def __init__(
        self,
        *,
        api_key: int = 0,
        min_version: int = 0,
        max_version: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.api_key: int = api_key
        self.min_version: int = min_version
        self.max_version: int = max_version
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int16(self.api_key)
        out.int16(self.min_version)
        out.int16(self.max_version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.api_key = src.int16()
        self.min_version = src.int16()
        self.max_version = src.int16()
        self.unknown_tags = src.tags()
        return self


class SupportedFeatureKey(Struct):
    """Stands in `ApiVersionsResponse.supported_features`."""

    __slots__ = ("name", "min_version", "max_version", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",
        min_version: int = 0,
        max_version: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.min_version: int = min_version
        self.max_version: int = max_version
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.int16(self.min_version)
        out.int16(self.max_version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.min_version = src.int16()
        self.max_version = src.int16()
        self.unknown_tags = src.tags()
        return self


class FinalizedFeatureKey(Struct):
    """Stands in `ApiVersionsResponse.finalized_features`."""

    __slots__ = ("name", "max_version_level", "min_version_level", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",
        max_version_level: int = 0,
        min_version_level: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.max_version_level: int = max_version_level
        self.min_version_level: int = min_version_level
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.int16(self.max_version_level)
        out.int16(self.min_version_level)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.max_version_level = src.int16()
        self.min_version_level = src.int16()
        self.unknown_tags = src.tags()
        return self


class ApiVersionsResponse(Response):
    """Answers `ApiVersionsRequest`."""

    API: ClassVar[ApiKey] = ApiKey.API_VERSIONS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 4, flexible=3)
    __slots__ = (
        "error_code",
        "api_keys",
        "throttle_time_ms",
        "supported_features",
        "finalized_features_epoch",
        "finalized_features",
        "zk_migration_ready",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        api_keys: list[ApiVersion] = EMPTY,
        throttle_time_ms: int = 0,  # v1+
        supported_features: list[SupportedFeatureKey] = EMPTY,  # v3+, tag 0
        finalized_features_epoch: int = -1,  # v3+, tag 1
        finalized_features: list[FinalizedFeatureKey] = EMPTY,  # v3+, tag 2
        zk_migration_ready: bool = False,  # v3+, tag 3
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.error_code: int = error_code
        self.api_keys: list[ApiVersion] = [] if api_keys is EMPTY else api_keys
        self.throttle_time_ms: int = throttle_time_ms
        self.supported_features: list[SupportedFeatureKey] = [] if supported_features is EMPTY else supported_features
        self.finalized_features_epoch: int = finalized_features_epoch
        self.finalized_features: list[FinalizedFeatureKey] = [] if finalized_features is EMPTY else finalized_features
        self.zk_migration_ready: bool = zk_migration_ready
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int16(self.error_code)
        out.array_length(len(self.api_keys))
        for api_version in self.api_keys:
            api_version.encode(out, version)
        if version >= 1:
            out.int32(self.throttle_time_ms)
        known: list[tuple[int, PlainWriter]] = []
        if self.supported_features and version >= 3:
            field = out.nested()
            field.array_length(len(self.supported_features))
            for supported_feature_key in self.supported_features:
                supported_feature_key.encode(field, version)
            known.append((0, field))
        if self.finalized_features_epoch != -1 and version >= 3:
            field = out.nested()
            field.int64(self.finalized_features_epoch)
            known.append((1, field))
        if self.finalized_features and version >= 3:
            field = out.nested()
            field.array_length(len(self.finalized_features))
            for finalized_feature_key in self.finalized_features:
                finalized_feature_key.encode(field, version)
            known.append((2, field))
        if self.zk_migration_ready and version >= 3:
            field = out.nested()
            field.boolean(self.zk_migration_ready)
            known.append((3, field))
        out.tags(self.unknown_tags, known)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.error_code = src.int16()
        self.api_keys = src.structs(ApiVersion, version)
        self.throttle_time_ms = src.int32() if version >= 1 else 0
        self.supported_features = []
        self.finalized_features_epoch = -1
        self.finalized_features = []
        self.zk_migration_ready = False
        unknown = []
        for tag, field in src.tagged():
            if tag == 0:
                self.supported_features = field.structs(SupportedFeatureKey, version)
            elif tag == 1:
                self.finalized_features_epoch = field.int64()
            elif tag == 2:
                self.finalized_features = field.structs(FinalizedFeatureKey, version)
            elif tag == 3:
                self.zk_migration_ready = field.boolean()
            else:
                unknown.append((tag, field.rest()))
            field.end()
        self.unknown_tags = tuple(unknown)
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


class ApiVersionsRequest(Request[ApiVersionsResponse]):
    """Answered by `ApiVersionsResponse`."""

    API: ClassVar[ApiKey] = ApiKey.API_VERSIONS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 4, flexible=3)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker", "controller")
    RESPONSE: ClassVar[type[ApiVersionsResponse]] = ApiVersionsResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {"client_software_name": 3, "client_software_version": 3}
    __slots__ = ("client_software_name", "client_software_version", "unknown_tags")

    def __init__(
        self,
        *,
        client_software_name: str = "",  # v3+
        client_software_version: str = "",  # v3+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.client_software_name: str = client_software_name
        self.client_software_version: str = client_software_version
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version >= 3:
            out.string(self.client_software_name)
            out.string(self.client_software_version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        if version >= 3:
            self.client_software_name = src.string()
            self.client_software_version = src.string()
        else:
            self.client_software_name = ""
            self.client_software_version = ""
        self.unknown_tags = src.tags()
        return self
