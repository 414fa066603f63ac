"""The bases of the generated messages, their version ranges, and the registry of requests.

Used by the generated modules in `messages/` and, through the package, by clients and brokers.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, NamedTuple, Self, TypeAlias

from aiokwire.errors import UnsupportedVersion
from aiokwire.protocol._codec import CompactReader, CompactWriter, PlainReader, PlainWriter, Untracked
from aiokwire.protocol.api_key import ApiKey

if TYPE_CHECKING:
    # The default lets `Request` stand alone in annotations; Python 3.11's own TypeVar does not know it yet.
    from typing_extensions import TypeVar

    R_co = TypeVar("R_co", bound="Response", covariant=True, default="Response")
else:
    from typing import TypeVar

    R_co = TypeVar("R_co", covariant=True)

Buffer: TypeAlias = bytes | bytearray | memoryview
UnknownTags: TypeAlias = tuple[tuple[int, bytes], ...]

NO_VERSION: Final = -1
"""An unknown or missing version."""
ZERO_UUID: Final = bytes(16)
"""Kafka's default of a uuid: no topic id, no directory id."""
EMPTY: Final[list[Any]] = []
"""The default of list arguments; replaced by a new list."""

_REPR_BYTES = 40


def uuid_text(value: bytes) -> str:
    """Return a uuid as Kafka writes it: 22 characters."""
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


class VersionRange(NamedTuple):
    """A range of versions, both ends included. `flexible`: the first flexible version, or a number
    above `max`."""

    min: int
    max: int
    flexible: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.min <= version <= self.max


# Fields of logins, delegation tokens and SCRAM users that no text shows.
_SECRETS: Final = frozenset({"auth_bytes", "hmac", "salted_password"})


class Message(Untracked):  # noqa: PLW1641 - mutable, so equal ones have no common hash
    """A struct of the protocol. Its fields are its slots, in wire order; `unknown_tags`, if any, is
    the last one."""

    __slots__: tuple[str, ...] = ()

    def encode(self, out: PlainWriter, version: int) -> None:
        """Write this struct.

        Raises:
            UnsupportedVersion: a field that this version does not have is not at its default.
        """
        raise NotImplementedError

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        """Read a struct.

        Raises:
            ProtocolViolation: the bytes are not such a struct.
        """
        raise NotImplementedError

    def unsupported(self, field: str, version: int) -> UnsupportedVersion:
        """Return the error for a value of a field that `version` does not have."""
        name = type(self).__name__
        return UnsupportedVersion(
            f"{name} version {version} cannot carry {field}={getattr(self, field)!r}", request=name
        )

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __repr__(self) -> str:
        fields = ((name, getattr(self, name)) for name in self.__slots__)
        shown = (
            f"{name}={'***' if name in _SECRETS else _shown(value)}"
            for name, value in fields
            if name != "unknown_tags" or value
        )
        return f"{type(self).__name__}({', '.join(shown)})"


class Struct(Message):
    """A struct within a message."""

    __slots__ = ()


class Data(Message):
    """A message inside a bytes field or a control record (see `embedded`)."""

    __slots__ = ()

    VERSIONS: ClassVar[VersionRange]


class Response(Message):
    """The response to a request."""

    __slots__ = ()

    API: ClassVar[ApiKey]
    VERSIONS: ClassVar[VersionRange]

    def error_codes(self) -> Iterator[int]:
        """Yield the error codes, if any, of the response and of the entries in its lists, 0
        included."""
        return iter(())


class Request(Message, Generic[R_co]):
    """A request. The type argument is the type of its response."""

    __slots__ = ()

    API: ClassVar[ApiKey]
    VERSIONS: ClassVar[VersionRange]
    """The versions that can be encoded and decoded, dropped and unstable ones included."""
    SERVED_FROM: ClassVar[int | None]
    """The oldest version that a current Kafka supports; None if it supports none."""
    UNSTABLE_FROM: ClassVar[int | None]
    """The first version that may still change: a broker does not advertise it. Usually None."""
    LISTENERS: ClassVar[tuple[str, ...]]
    """The roles that serve it in a current Kafka: "broker", "controller"."""
    RESPONSE: ClassVar[type[Response]]
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {}
    """The fields of the request or its structs that a later version than the first added, and that
    version."""

    def broker_wait_ms(self) -> int:
        """Return the time that the broker may wait before it responds; 0 if it responds at once."""
        return 0

    def coordinator_key(self) -> str:
        """Return the group or transactional id whose coordinator receives the request, or ""."""
        return ""


def writer_for(versions: VersionRange, version: int) -> PlainWriter:
    """Return a writer for the encoding of `version`."""
    return CompactWriter() if version >= versions.flexible else PlainWriter()


def reader_for(versions: VersionRange, version: int, data: Buffer, position: int = 0) -> PlainReader:
    """Return a reader for the encoding of `version`."""
    return CompactReader(data, position) if version >= versions.flexible else PlainReader(data, position)


_request_types: dict[int, type[Request]] = {}


def request_type(api_key: int) -> type[Request]:
    """Return the request class of an API; its module is imported at the first call.

    Raises:
        KeyError: the API is unknown.
    """
    found = _request_types.get(api_key)
    if found is None:
        try:
            name = ApiKey(api_key).name
        except ValueError:
            raise KeyError(api_key) from None
        module = import_module(f"aiokwire.protocol.messages.{name.lower()}")
        found = getattr(module, name.title().replace("_", "") + "Request")
        _request_types[api_key] = found
    return found


def _shown(value: object) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        size = value.nbytes if isinstance(value, memoryview) else len(value)
        return f"<{size} bytes>" if size > _REPR_BYTES else repr(bytes(value))
    return repr(value)
