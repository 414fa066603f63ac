"""UpdateFeatures (key 57), versions 0-2, flexible from 0.

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


class UpdatableFeatureResult(Struct):
    """Stands in `UpdateFeaturesResponse.results`."""

    __slots__ = ("feature", "error_code", "error_message", "unknown_tags")

    def __init__(
        self,
        *,
        feature: str = "",
        error_code: int = 0,
        error_message: str | None = "",
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.feature: str = feature
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.feature)
        out.int16(self.error_code)
        out.nullable_string(self.error_message)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.feature = src.string()
        self.error_code = src.int16()
        self.error_message = src.nullable_string()
        self.unknown_tags = src.tags()
        return self


class UpdateFeaturesResponse(Response):
    """Answers `UpdateFeaturesRequest`."""

    API: ClassVar[ApiKey] = ApiKey.UPDATE_FEATURES
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 2, flexible=0)
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "results", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        results: list[UpdatableFeatureResult] = EMPTY,  # v0-1
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.results: list[UpdatableFeatureResult] = [] if results is EMPTY else results
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        out.int16(self.error_code)
        out.nullable_string(self.error_message)
        if version <= 1:
            out.array_length(len(self.results))
            for updatable_feature_result in self.results:
                updatable_feature_result.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.error_code = src.int16()
        self.error_message = src.nullable_string()
        self.results = src.structs(UpdatableFeatureResult, version) if version <= 1 else []
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code
        for entry in self.results:
            yield entry.error_code


class FeatureUpdateKey(Struct):
    """Stands in `UpdateFeaturesRequest.feature_updates`."""

    __slots__ = ("feature", "max_version_level", "allow_downgrade", "upgrade_type", "unknown_tags")

    def __init__(
        self,
        *,
        feature: str = "",
        max_version_level: int = 0,
        allow_downgrade: bool = False,  # v0
        upgrade_type: int = 1,  # v1+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.feature: str = feature
        self.max_version_level: int = max_version_level
        self.allow_downgrade: bool = allow_downgrade
        self.upgrade_type: int = upgrade_type
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.feature)
        out.int16(self.max_version_level)
        if version <= 0:
            out.boolean(self.allow_downgrade)
        elif self.allow_downgrade:
            raise self.unsupported("allow_downgrade", version)
        if version >= 1:
            out.int8(self.upgrade_type)
        elif self.upgrade_type != 1:
            raise self.unsupported("upgrade_type", version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.feature = src.string()
        self.max_version_level = src.int16()
        self.allow_downgrade = src.boolean() if version <= 0 else False
        self.upgrade_type = src.int8() if version >= 1 else 1
        self.unknown_tags = src.tags()
        return self


class UpdateFeaturesRequest(Request[UpdateFeaturesResponse]):
    """Answered by `UpdateFeaturesResponse`."""

    API: ClassVar[ApiKey] = ApiKey.UPDATE_FEATURES
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 2, flexible=0)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker", "controller")
    RESPONSE: ClassVar[type[UpdateFeaturesResponse]] = UpdateFeaturesResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {"upgrade_type": 1, "validate_only": 1}
    __slots__ = ("timeout_ms", "feature_updates", "validate_only", "unknown_tags")

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        feature_updates: list[FeatureUpdateKey] = EMPTY,
        validate_only: bool = False,  # v1+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.timeout_ms: int = timeout_ms
        self.feature_updates: list[FeatureUpdateKey] = [] if feature_updates is EMPTY else feature_updates
        self.validate_only: bool = validate_only
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.timeout_ms)
        out.array_length(len(self.feature_updates))
        for feature_update_key in self.feature_updates:
            feature_update_key.encode(out, version)
        if version >= 1:
            out.boolean(self.validate_only)
        elif self.validate_only:
            raise self.unsupported("validate_only", version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.timeout_ms = src.int32()
        self.feature_updates = src.structs(FeatureUpdateKey, version)
        self.validate_only = src.boolean() if version >= 1 else False
        self.unknown_tags = src.tags()
        return self

    def broker_wait_ms(self) -> int:
        return max(self.timeout_ms, 0)
