"""What the generated messages are made of: their bases, their version ranges, and the registry of
requests.

Used by the generated modules in `messages/` and, through the package's front door, by all who send
or serve them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, NamedTuple, Self, TypeAlias

from aiokwire.errors import UnsupportedVersion
from aiokwire.protocol._codec import CompactReader, CompactWriter, PlainReader, PlainWriter
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
"""Stands for a version that is not known or not there."""
ZERO_UUID: Final = bytes(16)
"""Kafka's default of a uuid: no topic id, no directory id."""
EMPTY: Final[list[Any]] = []
"""The default of list arguments: never kept, a fresh list takes its place."""

_REPR_BYTES = 40


class VersionRange(NamedTuple):
    """Both ends included; `flexible` is the first flexible version, or a number above `max` when
    there is none."""

    min: int
    max: int
    flexible: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.min <= version <= self.max


class Message:  # noqa: PLW1641 - mutable, so equal ones have no common hash
    """A struct of the protocol. Its fields are its slots, in wire order, with `unknown_tags` last
    where it has tags."""

    __slots__: tuple[str, ...] = ()

    def encode(self, out: PlainWriter, version: int) -> None:
        """Writes this struct.

        Raises:
            UnsupportedVersion: a field that this version cannot carry has another value than its default.
        """
        raise NotImplementedError

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        """Reads one.

        Raises:
            ProtocolViolation: the bytes are not such a struct.
        """
        raise NotImplementedError

    def unsupported(self, field: str, version: int) -> UnsupportedVersion:
        """The error for a value that `version` cannot carry."""
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
        shown = (f"{name}={_shown(value)}" for name, value in fields if name != "unknown_tags" or value)
        return f"{type(self).__name__}({', '.join(shown)})"


class Struct(Message):
    """A struct within a message."""

    __slots__ = ()


class Data(Message):
    """A message that is not sent as such: it stands inside a bytes field or a control record (see
    `embedded`)."""

    __slots__ = ()

    VERSIONS: ClassVar[VersionRange]


class Response(Message):
    """What a broker answers."""

    __slots__ = ()

    API: ClassVar[ApiKey]
    VERSIONS: ClassVar[VersionRange]

    def error_codes(self) -> Iterator[int]:
        """Yield its error code and those of the entries in its lists, 0 included; nothing where it
        has none."""
        return iter(())


class Request(Message, Generic[R_co]):
    """What a broker is asked. The type argument is the response that answers it."""

    __slots__ = ()

    API: ClassVar[ApiKey]
    VERSIONS: ClassVar[VersionRange]
    """Every version that can be written and read, dropped and unstable ones included."""
    SERVED_FROM: ClassVar[int | None]
    """The oldest version that a current Kafka still serves; None when it serves none of them."""
    UNSTABLE_FROM: ClassVar[int | None]
    """The first version that may still change: a broker does not advertise it. Usually None."""
    LISTENERS: ClassVar[tuple[str, ...]]
    """Who serves it in a current Kafka: "broker", "controller"."""
    RESPONSE: ClassVar[type[Response]]
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {}
    """Fields of the request or its structs that its first version does not have, and the version
    that added them."""

    def broker_wait_ms(self) -> int:
        """Return how long the request lets the broker wait before it responds; 0 if it must respond
        at once."""
        return 0

    def coordinator_key(self) -> str:
        """Return the group or transactional id whose coordinator the request is for; empty if it
        needs none."""
        return ""


def writer_for(versions: VersionRange, version: int, *, framed: bool = False) -> PlainWriter:
    """A writer in the encoding that `version` has."""
    return CompactWriter(framed) if version >= versions.flexible else PlainWriter(framed)


def reader_for(versions: VersionRange, version: int, data: Buffer, position: int = 0) -> PlainReader:
    """A reader of the encoding that `version` has."""
    return CompactReader(data, position) if version >= versions.flexible else PlainReader(data, position)


_request_types: dict[int, type[Request]] = {}


def request_type(api_key: int) -> type[Request]:
    """The request class of an API; its module is loaded when it is first asked for.

    Raises:
        KeyError: there is no such API.
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
