"""BrokerHeartbeat (key 63), versions 0-2, flexible from 0.

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
    UnknownTags,
    VersionRange,
)
from aiokwire.protocol.api_key import ApiKey


class BrokerHeartbeatResponse(Response):
    """Answers `BrokerHeartbeatRequest`."""

    API: ClassVar[ApiKey] = ApiKey.BROKER_HEARTBEAT
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 2, flexible=0)
    __slots__ = ("throttle_time_ms", "error_code", "is_caught_up", "is_fenced", "should_shut_down", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        is_caught_up: bool = False,
        is_fenced: bool = True,
        should_shut_down: bool = False,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.is_caught_up: bool = is_caught_up
        self.is_fenced: bool = is_fenced
        self.should_shut_down: bool = should_shut_down
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        out.int16(self.error_code)
        out.boolean(self.is_caught_up)
        out.boolean(self.is_fenced)
        out.boolean(self.should_shut_down)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.error_code = src.int16()
        self.is_caught_up = src.boolean()
        self.is_fenced = src.boolean()
        self.should_shut_down = src.boolean()
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


class BrokerHeartbeatRequest(Request[BrokerHeartbeatResponse]):
    """Answered by `BrokerHeartbeatResponse`."""

    API: ClassVar[ApiKey] = ApiKey.BROKER_HEARTBEAT
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 2, flexible=0)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("controller",)
    RESPONSE: ClassVar[type[BrokerHeartbeatResponse]] = BrokerHeartbeatResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {"offline_log_dirs": 1, "cordoned_log_dirs": 2}
    __slots__ = (
        "broker_id",
        "broker_epoch",
        "current_metadata_offset",
        "want_fence",
        "want_shut_down",
        "offline_log_dirs",
        "cordoned_log_dirs",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        current_metadata_offset: int = 0,
        want_fence: bool = False,
        want_shut_down: bool = False,
        offline_log_dirs: list[bytes] = EMPTY,  # v1+, tag 0
        cordoned_log_dirs: list[bytes] | None = None,  # v2+, tag 1
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.broker_id: int = broker_id
        self.broker_epoch: int = broker_epoch
        self.current_metadata_offset: int = current_metadata_offset
        self.want_fence: bool = want_fence
        self.want_shut_down: bool = want_shut_down
        self.offline_log_dirs: list[bytes] = [] if offline_log_dirs is EMPTY else offline_log_dirs
        self.cordoned_log_dirs: list[bytes] | None = cordoned_log_dirs
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.broker_id)
        out.int64(self.broker_epoch)
        out.int64(self.current_metadata_offset)
        out.boolean(self.want_fence)
        out.boolean(self.want_shut_down)
        known: list[tuple[int, PlainWriter]] = []
        if self.offline_log_dirs:
            if version < 1:
                raise self.unsupported("offline_log_dirs", version)
            field = out.nested()
            field.uuids(self.offline_log_dirs)
            known.append((0, field))
        if self.cordoned_log_dirs is not None:
            if version < 2:
                raise self.unsupported("cordoned_log_dirs", version)
            field = out.nested()
            field.nullable_uuids(self.cordoned_log_dirs)
            known.append((1, field))
        out.tags(self.unknown_tags, known)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.broker_id = src.int32()
        self.broker_epoch = src.int64()
        self.current_metadata_offset = src.int64()
        self.want_fence = src.boolean()
        self.want_shut_down = src.boolean()
        self.offline_log_dirs = []
        self.cordoned_log_dirs = None
        unknown = []
        for tag, field in src.tagged():
            if tag == 0 and version >= 1:
                self.offline_log_dirs = field.uuids()
            elif tag == 1 and version >= 2:
                self.cordoned_log_dirs = field.nullable_uuids()
            else:
                unknown.append((tag, field.rest()))
            field.end()
        self.unknown_tags = tuple(unknown)
        return self
