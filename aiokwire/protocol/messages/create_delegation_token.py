"""CreateDelegationToken (key 38), versions 0-3, flexible from 2.

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


class CreateDelegationTokenResponse(Response):
    """Answers `CreateDelegationTokenRequest`."""

    API: ClassVar[ApiKey] = ApiKey.CREATE_DELEGATION_TOKEN
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 3, flexible=2)
    __slots__ = (
        "error_code",
        "principal_type",
        "principal_name",
        "token_requester_principal_type",
        "token_requester_principal_name",
        "issue_timestamp_ms",
        "expiry_timestamp_ms",
        "max_timestamp_ms",
        "token_id",
        "hmac",
        "throttle_time_ms",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        principal_type: str = "",
        principal_name: str = "",
        token_requester_principal_type: str = "",  # v3+
        token_requester_principal_name: str = "",  # v3+
        issue_timestamp_ms: int = 0,
        expiry_timestamp_ms: int = 0,
        max_timestamp_ms: int = 0,
        token_id: str = "",
        hmac: bytes = b"",
        throttle_time_ms: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.error_code: int = error_code
        self.principal_type: str = principal_type
        self.principal_name: str = principal_name
        self.token_requester_principal_type: str = token_requester_principal_type
        self.token_requester_principal_name: str = token_requester_principal_name
        self.issue_timestamp_ms: int = issue_timestamp_ms
        self.expiry_timestamp_ms: int = expiry_timestamp_ms
        self.max_timestamp_ms: int = max_timestamp_ms
        self.token_id: str = token_id
        self.hmac: bytes = hmac
        self.throttle_time_ms: int = throttle_time_ms
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int16(self.error_code)
        out.string(self.principal_type)
        out.string(self.principal_name)
        if version >= 3:
            out.string(self.token_requester_principal_type)
            out.string(self.token_requester_principal_name)
        elif self.token_requester_principal_type:
            raise self.unsupported("token_requester_principal_type", version)
        elif self.token_requester_principal_name:
            raise self.unsupported("token_requester_principal_name", version)
        out.int64(self.issue_timestamp_ms)
        out.int64(self.expiry_timestamp_ms)
        out.int64(self.max_timestamp_ms)
        out.string(self.token_id)
        out.bytes_(self.hmac)
        out.int32(self.throttle_time_ms)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.error_code = src.int16()
        self.principal_type = src.string()
        self.principal_name = src.string()
        if version >= 3:
            self.token_requester_principal_type = src.string()
            self.token_requester_principal_name = src.string()
        else:
            self.token_requester_principal_type = ""
            self.token_requester_principal_name = ""
        self.issue_timestamp_ms = src.int64()
        self.expiry_timestamp_ms = src.int64()
        self.max_timestamp_ms = src.int64()
        self.token_id = src.string()
        self.hmac = src.bytes_()
        self.throttle_time_ms = src.int32()
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


class CreatableRenewers(Struct):
    """Stands in `CreateDelegationTokenRequest.renewers`."""

    __slots__ = ("principal_type", "principal_name", "unknown_tags")

    def __init__(
        self,
        *,
        principal_type: str = "",
        principal_name: str = "",
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.principal_type: str = principal_type
        self.principal_name: str = principal_name
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.principal_type)
        out.string(self.principal_name)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.principal_type = src.string()
        self.principal_name = src.string()
        self.unknown_tags = src.tags()
        return self


class CreateDelegationTokenRequest(Request[CreateDelegationTokenResponse]):
    """Answered by `CreateDelegationTokenResponse`."""

    API: ClassVar[ApiKey] = ApiKey.CREATE_DELEGATION_TOKEN
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 3, flexible=2)
    SERVED_FROM: ClassVar[int | None] = 1
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker", "controller")
    RESPONSE: ClassVar[type[CreateDelegationTokenResponse]] = CreateDelegationTokenResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {"owner_principal_type": 3, "owner_principal_name": 3}
    __slots__ = ("owner_principal_type", "owner_principal_name", "renewers", "max_lifetime_ms", "unknown_tags")

    def __init__(
        self,
        *,
        owner_principal_type: str | None = "",  # v3+
        owner_principal_name: str | None = "",  # v3+
        renewers: list[CreatableRenewers] = EMPTY,
        max_lifetime_ms: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.owner_principal_type: str | None = owner_principal_type
        self.owner_principal_name: str | None = owner_principal_name
        self.renewers: list[CreatableRenewers] = [] if renewers is EMPTY else renewers
        self.max_lifetime_ms: int = max_lifetime_ms
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version >= 3:
            out.nullable_string(self.owner_principal_type)
            out.nullable_string(self.owner_principal_name)
        elif self.owner_principal_type is None or self.owner_principal_type:
            raise self.unsupported("owner_principal_type", version)
        elif self.owner_principal_name is None or self.owner_principal_name:
            raise self.unsupported("owner_principal_name", version)
        out.array_length(len(self.renewers))
        for creatable_renewers in self.renewers:
            creatable_renewers.encode(out, version)
        out.int64(self.max_lifetime_ms)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        if version >= 3:
            self.owner_principal_type = src.nullable_string()
            self.owner_principal_name = src.nullable_string()
        else:
            self.owner_principal_type = ""
            self.owner_principal_name = ""
        self.renewers = src.structs(CreatableRenewers, version)
        self.max_lifetime_ms = src.int64()
        self.unknown_tags = src.tags()
        return self
