"""Converts parsed JSON to values of the standard library's types: dataclasses, TypedDicts, enums.

Keys that a class does not declare are ignored, so that producers may add fields.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import types
import typing
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, NoReturn, Self, get_args, get_origin

from aiokwire.errors import ConfigurationError

Convert = Callable[[Any], Any]

# JSON has no type for these: they are strings in the form that the class itself parses.
_FROM_TEXT: Final[Mapping[Any, Convert]] = {
    datetime.datetime: datetime.datetime.fromisoformat,
    datetime.date: datetime.date.fromisoformat,
    datetime.time: datetime.time.fromisoformat,
    uuid.UUID: uuid.UUID,
    decimal.Decimal: decimal.Decimal,
}
_WRAPPERS: Final = (typing.Annotated, typing.Required, typing.NotRequired)


class Mismatch(ValueError):
    """A JSON value does not have the annotated type; `path` is where, such as `.items[2].price`."""

    def __init__(self, problem: str, path: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.path = path

    def __str__(self) -> str:
        return f"{self.path.removeprefix('.')}: {self.problem}" if self.path else self.problem

    def within(self, place: str) -> Self:
        """Return the same error as the container sees it."""
        return type(self)(self.problem, place + self.path)


def converter_of(annotation: Any) -> Convert:
    """Return a function that checks and converts a parsed JSON value; it raises Mismatch.

    Raises: ConfigurationError: the annotation has a type without a form in JSON.
    """
    return _Builder().convert(annotation)


class _Object:
    """Converts a JSON object; `fields` is filled after its creation, as types may be recursive."""

    def __init__(self, create: Callable[[dict[str, Any]], Any]) -> None:
        self.fields: dict[str, Convert] = {}
        self.required: frozenset[str] = frozenset()
        self._create = create

    def __call__(self, value: Any) -> Any:
        if type(value) is not dict:
            _fail("an object", value)
        missing = self.required - value.keys()
        if missing:
            raise Mismatch(f"{', '.join(sorted(missing))} missing")
        result = {}
        for name, convert in self.fields.items():
            if name in value:
                try:
                    result[name] = convert(value[name])
                except Mismatch as error:
                    raise error.within(f".{name}") from error.__cause__
        return self._create(result)


class _Builder:
    """Builds the converters of one annotation."""

    def __init__(self) -> None:
        self._objects: dict[Any, _Object] = {}

    def convert(self, annotation: Any) -> Convert:
        origin, arguments = get_origin(annotation), get_args(annotation)
        if origin in _WRAPPERS:
            return self.convert(arguments[0])
        if isinstance(annotation, typing.NewType):
            return self.convert(annotation.__supertype__)
        if origin in (typing.Union, types.UnionType):
            return _union([self.convert(one) for one in arguments], annotation)
        if origin is Literal:
            return _literal(arguments)
        if origin in (list, Sequence) and len(arguments) == 1:
            return _list(self.convert(arguments[0]), list)
        if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
            return _list(self.convert(arguments[0]), tuple)
        if origin in (dict, Mapping) and arguments[:1] == (str,):
            return _dict(self.convert(arguments[1]))
        if origin is None:
            return self._plain(annotation)
        return _refuse(annotation)

    def _plain(self, annotation: Any) -> Convert:
        if annotation in (Any, object):
            return _unchanged
        if annotation in (None, type(None)):
            return _null
        if not isinstance(annotation, type):
            return _refuse(annotation)
        if annotation in _SCALARS:
            return _SCALARS[annotation]
        if annotation in _FROM_TEXT:
            return _from_text(annotation)
        if issubclass(annotation, enum.Enum):
            return _enumeration(annotation)
        if dataclasses.is_dataclass(annotation):
            return self._dataclass(annotation)
        if issubclass(annotation, dict) and hasattr(annotation, "__required_keys__"):  # typing_extensions', too
            return self._typed_dict(annotation)
        return _refuse(annotation)

    def _dataclass(self, kind: type) -> Convert:
        if kind in self._objects:
            return self._objects[kind]
        built = self._objects[kind] = _Object(lambda fields: kind(**fields))
        hints = _hints(kind)
        fields = [field for field in dataclasses.fields(kind) if field.init]
        built.fields = {field.name: self.convert(hints[field.name]) for field in fields}
        built.required = frozenset(
            field.name
            for field in fields
            if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        )
        return built

    def _typed_dict(self, kind: Any) -> Convert:
        if kind in self._objects:
            return self._objects[kind]
        built = self._objects[kind] = _Object(lambda fields: fields)
        hints = _hints(kind)
        built.fields = {name: self.convert(hint) for name, hint in hints.items()}
        # `__required_keys__` misses NotRequired in annotations that are strings.
        optional = {name for name, hint in hints.items() if get_origin(hint) is typing.NotRequired}
        built.required = frozenset(kind.__required_keys__) - optional
        return built


def _hints(kind: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(kind, include_extras=True)
    except NameError as error:
        raise ConfigurationError(
            f"the annotations of {kind.__qualname__} cannot be evaluated: {error}; define or import the name at the "
            "top of its module, outside `if TYPE_CHECKING:`"
        ) from None


def _refuse(annotation: Any) -> NoReturn:
    name = annotation.__qualname__ if isinstance(annotation, type) else str(annotation)
    raise ConfigurationError(
        f"{name} cannot be decoded from JSON: use a dataclass, a TypedDict, a pydantic model or a msgspec struct, or "
        "pass value_deserializer (key_deserializer for a key)"
    )


def _fail(wanted: str, value: Any) -> NoReturn:
    kinds = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    raise Mismatch(f"must be {wanted}, not {kinds.get(type(value), 'a number')}")


def _unchanged(value: Any) -> Any:
    return value


def _null(value: Any) -> None:
    if value is not None:
        _fail("null", value)


def _float(value: Any) -> float:
    if type(value) is not float and type(value) is not int:
        _fail("a number", value)
    return float(value)


def _exactly(kind: type, wanted: str) -> Convert:
    def check(value: Any) -> Any:
        if type(value) is not kind:
            _fail(wanted, value)
        return value

    return check


_SCALARS: Final[Mapping[Any, Convert]] = {
    bool: _exactly(bool, "a boolean"),
    int: _exactly(int, "an integer"),
    float: _float,
    str: _exactly(str, "a string"),
    list: _exactly(list, "an array"),
    dict: _exactly(dict, "an object"),
}


def _from_text(kind: type) -> Convert:
    parse = _FROM_TEXT[kind]

    def convert(value: Any) -> Any:
        if type(value) is not str:
            _fail(f"a string with a {kind.__name__}", value)
        try:
            return parse(value)
        except (ValueError, ArithmeticError) as error:
            raise Mismatch(f"{value!r:.100} is not a {kind.__name__}") from error

    return convert


def _enumeration(kind: type[enum.Enum]) -> Convert:
    def convert(value: Any) -> Any:
        try:
            return kind(value)
        except ValueError as error:
            choices = ", ".join(repr(member.value) for member in kind)
            raise Mismatch(f"{value!r:.100} is not one of {choices}") from error

    return convert


def _literal(choices: tuple[Any, ...]) -> Convert:
    def convert(value: Any) -> Any:
        if not any(type(value) is type(choice) and value == choice for choice in choices):
            raise Mismatch(f"{value!r:.100} is not one of {', '.join(map(repr, choices))}")
        return value

    return convert


def _union(members: list[Convert], annotation: Any) -> Convert:
    if type(None) in get_args(annotation):  # for the more precise error of the only other member
        others = [member for member in members if member is not _null]
        rest = others[0] if len(others) == 1 else _union_of(others, annotation)
        return lambda value: None if value is None else rest(value)
    return _union_of(members, annotation)


def _union_of(members: list[Convert], annotation: Any) -> Convert:
    def convert(value: Any) -> Any:
        for member in members:
            try:
                return member(value)
            except Mismatch:
                continue
        raise Mismatch(f"{value!r:.100} does not match any type of {annotation}")

    return convert


def _list(convert: Convert, create: Callable[[list[Any]], Any]) -> Convert:
    def convert_all(value: Any) -> Any:
        if type(value) is not list:
            _fail("an array", value)
        result = []
        for index, item in enumerate(value):
            try:
                result.append(convert(item))
            except Mismatch as error:
                raise error.within(f"[{index}]") from error.__cause__
        return create(result)

    return convert_all


def _dict(convert: Convert) -> Convert:
    def convert_all(value: Any) -> Any:
        if type(value) is not dict:
            _fail("an object", value)
        result = {}
        for name, item in value.items():
            try:
                result[name] = convert(item)
            except Mismatch as error:
                raise error.within(f".{name}") from error.__cause__
        return result

    return convert_all
