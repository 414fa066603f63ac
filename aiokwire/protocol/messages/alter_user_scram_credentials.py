"""AlterUserScramCredentials (key 51), versions 0, flexible from 0.

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


class AlterUserScramCredentialsResult(Struct):
    """Stands in `AlterUserScramCredentialsResponse.results`."""

    __slots__ = ("user", "error_code", "error_message", "unknown_tags")

    def __init__(
        self,
        *,
        user: str = "",
        error_code: int = 0,
        error_message: str | None = "",
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.user: str = user
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.user)
        out.int16(self.error_code)
        out.nullable_string(self.error_message)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.user = src.string()
        self.error_code = src.int16()
        self.error_message = src.nullable_string()
        self.unknown_tags = src.tags()
        return self


class AlterUserScramCredentialsResponse(Response):
    """Answers `AlterUserScramCredentialsRequest`."""

    API: ClassVar[ApiKey] = ApiKey.ALTER_USER_SCRAM_CREDENTIALS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 0, flexible=0)
    __slots__ = ("throttle_time_ms", "results", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[AlterUserScramCredentialsResult] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: list[AlterUserScramCredentialsResult] = [] if results is EMPTY else results
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        out.array_length(len(self.results))
        for alter_user_scram_credentials_result in self.results:
            alter_user_scram_credentials_result.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.results = src.structs(AlterUserScramCredentialsResult, version)
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        for entry in self.results:
            yield entry.error_code


class ScramCredentialDeletion(Struct):
    """Stands in `AlterUserScramCredentialsRequest.deletions`."""

    __slots__ = ("name", "mechanism", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",
        mechanism: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.mechanism: int = mechanism
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.int8(self.mechanism)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.mechanism = src.int8()
        self.unknown_tags = src.tags()
        return self


class ScramCredentialUpsertion(Struct):
    """Stands in `AlterUserScramCredentialsRequest.upsertions`."""

    __slots__ = ("name", "mechanism", "iterations", "salt", "salted_password", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",
        mechanism: int = 0,
        iterations: int = 0,
        salt: bytes = b"",
        salted_password: bytes = b"",
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.mechanism: int = mechanism
        self.iterations: int = iterations
        self.salt: bytes = salt
        self.salted_password: bytes = salted_password
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.int8(self.mechanism)
        out.int32(self.iterations)
        out.bytes_(self.salt)
        out.bytes_(self.salted_password)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.mechanism = src.int8()
        self.iterations = src.int32()
        self.salt = src.bytes_()
        self.salted_password = src.bytes_()
        self.unknown_tags = src.tags()
        return self


class AlterUserScramCredentialsRequest(Request[AlterUserScramCredentialsResponse]):
    """Answered by `AlterUserScramCredentialsResponse`."""

    API: ClassVar[ApiKey] = ApiKey.ALTER_USER_SCRAM_CREDENTIALS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 0, flexible=0)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker", "controller")
    RESPONSE: ClassVar[type[AlterUserScramCredentialsResponse]] = AlterUserScramCredentialsResponse
    __slots__ = ("deletions", "upsertions", "unknown_tags")

    def __init__(
        self,
        *,
        deletions: list[ScramCredentialDeletion] = EMPTY,
        upsertions: list[ScramCredentialUpsertion] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.deletions: list[ScramCredentialDeletion] = [] if deletions is EMPTY else deletions
        self.upsertions: list[ScramCredentialUpsertion] = [] if upsertions is EMPTY else upsertions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.array_length(len(self.deletions))
        for scram_credential_deletion in self.deletions:
            scram_credential_deletion.encode(out, version)
        out.array_length(len(self.upsertions))
        for scram_credential_upsertion in self.upsertions:
            scram_credential_upsertion.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.deletions = src.structs(ScramCredentialDeletion, version)
        self.upsertions = src.structs(ScramCredentialUpsertion, version)
        self.unknown_tags = src.tags()
        return self
