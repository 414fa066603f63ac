"""Messages with arbitrary values, derived from the generated classes, not from the definitions."""

from __future__ import annotations

import random
import types
import typing
from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, ParamSpec, TypeVar

from aiokwire.errors import KafkaError
from aiokwire.protocol import ZERO_UUID, Buffer, Data, Message, Request, Response, VersionRange, messages
from aiokwire.protocol.api import reader_for, writer_for

TopLevel = Request | Response | Data

_HIGHEST = (2**63 - 1, 2**31 - 1, 2**16 - 1, 2**15 - 1, 2**7 - 1)
_LOWEST = (-(2**63), -(2**31), -(2**15), -(2**7), 0)


P = ParamSpec("P")
T = TypeVar("T")


def remembered(function: Callable[P, T]) -> Callable[P, T]:
    """As `functools.cache`, whose type refuses classes of unhashable instances."""
    results: dict[object, T] = {}

    def call(*args: P.args, **options: P.kwargs) -> T:
        if args not in results:
            results[args] = function(*args, **options)
        return results[args]

    return call


def all_types() -> list[type[TopLevel]]:
    """Return every request, response and data message."""
    modules = [import_module(f"{messages.__name__}.{info.name}") for info in iter_modules(messages.__path__)]
    return [
        item
        for module in modules
        for item in vars(module).values()
        if isinstance(item, type) and issubclass(item, TopLevel) and item.__module__ == module.__name__
    ]


def versions_of(kind: type[TopLevel]) -> range:
    return range(kind.VERSIONS.min, kind.VERSIONS.max + 1)


def encode(message: Message, versions: VersionRange, version: int) -> bytes:
    out = writer_for(versions, version)
    message.encode(out, version)
    return out.getvalue()


def decode(kind: type[Message], data: Buffer, versions: VersionRange, version: int) -> Message:
    src = reader_for(versions, version, data)
    message = kind.decode(src, version)
    src.end()
    return message


def sample(
    kind: type[Message], rng: random.Random, versions: VersionRange, version: int, *, unknown_tags: bool = True
) -> Message:
    """Return a message with arbitrary values in every field that this version has."""
    message = kind()
    for name, hint in hints(kind).items():
        if _carries(kind, name, versions, version):
            setattr(message, name, _value(kind, name, hint, rng, versions, version, unknown_tags))
    if unknown_tags and "unknown_tags" in kind.__slots__ and version >= versions.flexible and rng.random() < 0.3:
        message.unknown_tags = tuple(  # type: ignore[attr-defined]  # it is one of the slots
            (tag, rng.randbytes(rng.randrange(20))) for tag in sorted(rng.sample(range(1000, 100_000), 2))
        )
    return message


@remembered
def hints(kind: type[Message]) -> dict[str, Any]:
    found = typing.get_type_hints(kind.__init__)
    return {name: hint for name, hint in found.items() if name not in ("return", "unknown_tags")}


def _parts(hint: Any) -> tuple[Any, bool]:
    """Return the type without None, and whether None is allowed. A buffer becomes bytes."""
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        members = typing.get_args(hint)
        return members[0], type(None) in members
    return hint, False


def _simple(kind: type[Message], name: str, hint: Any, versions: VersionRange, version: int) -> Any:
    """Return a value that is not the default."""
    inner, _ = _parts(hint)
    default = getattr(kind(), name)
    if typing.get_origin(inner) is list:
        item = typing.get_args(inner)[0]
        return [item() if issubclass(item, Message) else {int: 1, str: "x", bytes: bytes(range(16))}[item]]
    if issubclass(inner, Message):
        made = inner()
        return made if made != default else _first_different(inner, versions, version)
    if inner is bytes:
        return bytes(range(16))
    return {int: 1 if default != 1 else 2, str: "x", bool: not default, float: 1.5}[inner]


def _first_different(kind: type[Message], versions: VersionRange, version: int) -> Message:
    made = kind()
    for name, hint in hints(kind).items():
        if _carries(kind, name, versions, version):
            setattr(made, name, _simple(kind, name, hint, versions, version))
            return made
    raise AssertionError(f"{kind.__name__} carries nothing in version {version}")


def _survives(kind: type[Message], name: str, value: Any, versions: VersionRange, version: int) -> bool:
    message = kind()
    setattr(message, name, value)
    try:
        again = decode(kind, encode(message, versions, version), versions, version)
    except (KafkaError, OverflowError, TypeError, AttributeError):
        return False
    return bool(getattr(again, name) == value)


@remembered
def _carries(kind: type[Message], name: str, versions: VersionRange, version: int) -> bool:
    hint = hints(kind)[name]
    return _survives(kind, name, _simple(kind, name, hint, versions, version), versions, version)


@remembered
def _nullable(kind: type[Message], name: str, versions: VersionRange, version: int) -> bool:
    return _survives(kind, name, None, versions, version)


@remembered
def _bounds(kind: type[Message], name: str, is_list: bool, versions: VersionRange, version: int) -> tuple[int, int]:
    def fits(value: int) -> bool:
        return _survives(kind, name, [value] if is_list else value, versions, version)

    return next(filter(fits, _LOWEST)), next(filter(fits, _HIGHEST))


def _value(
    kind: type[Message],
    name: str,
    hint: Any,
    rng: random.Random,
    versions: VersionRange,
    version: int,
    unknown_tags: bool,
) -> Any:
    inner, optional = _parts(hint)
    if optional and rng.random() < 0.2 and _nullable(kind, name, versions, version):
        return None
    is_list = typing.get_origin(inner) is list
    item = typing.get_args(inner)[0] if is_list else inner

    def one() -> Any:
        if issubclass(item, Message):
            return sample(item, rng, versions, version, unknown_tags=unknown_tags)
        if item is bool:
            return rng.random() < 0.5
        if item is int:
            low, high = _bounds(kind, name, is_list, versions, version)
            return rng.choice((low, high, rng.randint(low, high), rng.randint(max(low, -2), 9)))
        if item is float:
            return rng.uniform(-1e9, 1e9)
        if item is str:
            return "".join(rng.choices("aZ0-._ äß€\U0001f600", k=rng.choice((0, 1, 5, 200))))
        if is_list or getattr(kind(), name) == ZERO_UUID:
            return rng.randbytes(16)
        return rng.randbytes(rng.choice((0, 1, 100, 126, 127, 1023, 1024, 5000)))

    return [one() for _ in range(rng.randrange(4))] if is_list else one()
