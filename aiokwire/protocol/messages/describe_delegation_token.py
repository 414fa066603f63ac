"""DescribeDelegationToken (key 41), versions 0-3, flexible from 2.

Generated from the definitions of Kafka 4.3.1 and 3.9.1 by `make generate`; do not edit.
"""

from __future__ import annotations

from collections.abc import Iterator
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


class DescribedDelegationTokenRenewer(Struct):
    """Stands in `DescribedDelegationToken.renewers`."""

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


class DescribedDelegationToken(Struct):
    """Stands in `DescribeDelegationTokenResponse.tokens`."""

    __slots__ = (
        "principal_type",
        "principal_name",
        "token_requester_principal_type",
        "token_requester_principal_name",
        "issue_timestamp",
        "expiry_timestamp",
        "max_timestamp",
        "token_id",
        "hmac",
        "renewers",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        principal_type: str = "",
        principal_name: str = "",
        token_requester_principal_type: str = "",  # v3+
        token_requester_principal_name: str = "",  # v3+
        issue_timestamp: int = 0,
        expiry_timestamp: int = 0,
        max_timestamp: int = 0,
        token_id: str = "",
        hmac: bytes = b"",
        renewers: list[DescribedDelegationTokenRenewer] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.principal_type: str = principal_type
        self.principal_name: str = principal_name
        self.token_requester_principal_type: str = token_requester_principal_type
        self.token_requester_principal_name: str = token_requester_principal_name
        self.issue_timestamp: int = issue_timestamp
        self.expiry_timestamp: int = expiry_timestamp
        self.max_timestamp: int = max_timestamp
        self.token_id: str = token_id
        self.hmac: bytes = hmac
        self.renewers: list[DescribedDelegationTokenRenewer] = [] if renewers is EMPTY else renewers
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.principal_type)
        out.string(self.principal_name)
        if version >= 3:
            out.string(self.token_requester_principal_type)
            out.string(self.token_requester_principal_name)
        elif self.token_requester_principal_type:
            raise self.unsupported("token_requester_principal_type", version)
        elif self.token_requester_principal_name:
            raise self.unsupported("token_requester_principal_name", version)
        out.int64(self.issue_timestamp)
        out.int64(self.expiry_timestamp)
        out.int64(self.max_timestamp)
        out.string(self.token_id)
        out.bytes_(self.hmac)
        out.array_length(len(self.renewers))
        for described_delegation_token_renewer in self.renewers:
            described_delegation_token_renewer.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.principal_type = src.string()
        self.principal_name = src.string()
        if version >= 3:
            self.token_requester_principal_type = src.string()
            self.token_requester_principal_name = src.string()
        else:
            self.token_requester_principal_type = ""
            self.token_requester_principal_name = ""
        self.issue_timestamp = src.int64()
        self.expiry_timestamp = src.int64()
        self.max_timestamp = src.int64()
        self.token_id = src.string()
        self.hmac = src.bytes_()
        self.renewers = src.structs(DescribedDelegationTokenRenewer, version)
        self.unknown_tags = src.tags()
        return self


class DescribeDelegationTokenResponse(Response):
    """Answers `DescribeDelegationTokenRequest`."""

    API: ClassVar[ApiKey] = ApiKey.DESCRIBE_DELEGATION_TOKEN
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 3, flexible=2)
    __slots__ = ("error_code", "tokens", "throttle_time_ms", "unknown_tags")

    def __init__(
        self,
        *,
        error_code: int = 0,
        tokens: list[DescribedDelegationToken] = EMPTY,
        throttle_time_ms: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.error_code: int = error_code
        self.tokens: list[DescribedDelegationToken] = [] if tokens is EMPTY else tokens
        self.throttle_time_ms: int = throttle_time_ms
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int16(self.error_code)
        out.array_length(len(self.tokens))
        for described_delegation_token in self.tokens:
            described_delegation_token.encode(out, version)
        out.int32(self.throttle_time_ms)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.error_code = src.int16()
        self.tokens = src.structs(DescribedDelegationToken, version)
        self.throttle_time_ms = src.int32()
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


class DescribeDelegationTokenOwner(Struct):
    """Stands in `DescribeDelegationTokenRequest.owners`."""

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


class DescribeDelegationTokenRequest(Request[DescribeDelegationTokenResponse]):
    """Answered by `DescribeDelegationTokenResponse`."""

    API: ClassVar[ApiKey] = ApiKey.DESCRIBE_DELEGATION_TOKEN
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 3, flexible=2)
    SERVED_FROM: ClassVar[int | None] = 1
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker", "controller")
    RESPONSE: ClassVar[type[DescribeDelegationTokenResponse]] = DescribeDelegationTokenResponse
    __slots__ = ("owners", "unknown_tags")

    def __init__(
        self,
        *,
        owners: list[DescribeDelegationTokenOwner] | None = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.owners: list[DescribeDelegationTokenOwner] | None = [] if owners is EMPTY else owners
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.nullable_array_length(-1 if self.owners is None else len(self.owners))
        for describe_delegation_token_owner in self.owners or ():
            describe_delegation_token_owner.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.owners = src.nullable_structs(DescribeDelegationTokenOwner, version)
        self.unknown_tags = src.tags()
        return self
