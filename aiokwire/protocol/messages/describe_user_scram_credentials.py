"""DescribeUserScramCredentials (key 50), versions 0, flexible from 0.

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


class CredentialInfo(Struct):
    """Stands in `DescribeUserScramCredentialsResult.credential_infos`."""

    __slots__ = ("mechanism", "iterations", "unknown_tags")

    def __init__(
        self,
        *,
        mechanism: int = 0,
        iterations: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.mechanism: int = mechanism
        self.iterations: int = iterations
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int8(self.mechanism)
        out.int32(self.iterations)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.mechanism = src.int8()
        self.iterations = src.int32()
        self.unknown_tags = src.tags()
        return self


class DescribeUserScramCredentialsResult(Struct):
    """Stands in `DescribeUserScramCredentialsResponse.results`."""

    __slots__ = ("user", "error_code", "error_message", "credential_infos", "unknown_tags")

    def __init__(
        self,
        *,
        user: str = "",
        error_code: int = 0,
        error_message: str | None = "",
        credential_infos: list[CredentialInfo] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.user: str = user
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.credential_infos: list[CredentialInfo] = [] if credential_infos is EMPTY else credential_infos
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.user)
        out.int16(self.error_code)
        out.nullable_string(self.error_message)
        out.array_length(len(self.credential_infos))
        for credential_info in self.credential_infos:
            credential_info.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.user = src.string()
        self.error_code = src.int16()
        self.error_message = src.nullable_string()
        self.credential_infos = src.structs(CredentialInfo, version)
        self.unknown_tags = src.tags()
        return self


class DescribeUserScramCredentialsResponse(Response):
    """Answers `DescribeUserScramCredentialsRequest`."""

    API: ClassVar[ApiKey] = ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 0, flexible=0)
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "results", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        results: list[DescribeUserScramCredentialsResult] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.results: list[DescribeUserScramCredentialsResult] = [] if results is EMPTY else results
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        out.int16(self.error_code)
        out.nullable_string(self.error_message)
        out.array_length(len(self.results))
        for describe_user_scram_credentials_result in self.results:
            describe_user_scram_credentials_result.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.error_code = src.int16()
        self.error_message = src.nullable_string()
        self.results = src.structs(DescribeUserScramCredentialsResult, version)
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code
        for entry in self.results:
            yield entry.error_code


class UserName(Struct):
    """Stands in `DescribeUserScramCredentialsRequest.users`."""

    __slots__ = ("name", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.unknown_tags = src.tags()
        return self


class DescribeUserScramCredentialsRequest(Request[DescribeUserScramCredentialsResponse]):
    """Answered by `DescribeUserScramCredentialsResponse`."""

    API: ClassVar[ApiKey] = ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 0, flexible=0)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker", "controller")
    RESPONSE: ClassVar[type[DescribeUserScramCredentialsResponse]] = DescribeUserScramCredentialsResponse
    __slots__ = ("users", "unknown_tags")

    def __init__(
        self,
        *,
        users: list[UserName] | None = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.users: list[UserName] | None = [] if users is EMPTY else users
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.nullable_array_length(-1 if self.users is None else len(self.users))
        for user_name in self.users or ():
            user_name.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.users = src.nullable_structs(UserName, version)
        self.unknown_tags = src.tags()
        return self
