"""A value has the type of its annotation, or is refused with the place and the reason."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NewType, NotRequired, TypedDict

import msgspec
import pydantic
import pytest

from aiokwire.errors import ConfigurationError
from aiokwire.worker.decoding import accepts_null, decoder_of

Cents = NewType("Cents", int)


class Status(enum.Enum):
    PAID = "paid"
    OPEN = "open"


@dataclasses.dataclass
class Item:
    name: str
    price: float
    tags: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Order:
    number: int
    items: tuple[Item, ...]
    status: Status = Status.OPEN
    parent: Order | None = None


class Shipment(TypedDict):
    order: int
    items: list[Item]
    note: NotRequired[str]


class Model(pydantic.BaseModel):
    number: int
    at: datetime.datetime


class Struct(msgspec.Struct):
    number: int


def decode(annotation: Any, value: object) -> Any:
    decoder = decoder_of(annotation)
    assert decoder is not None
    return decoder(json.dumps(value).encode())


def test_bytes_stay_as_they_are() -> None:
    assert decoder_of(bytes) is None
    assert decoder_of(bytes | None) is None


def test_text_is_utf_8() -> None:
    decoder = decoder_of(str)
    assert decoder is not None
    assert decoder("grün".encode()) == "grün"
    with pytest.raises(UnicodeDecodeError):
        decoder(b"\xff")


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (Any, {"a": [1, None]}, {"a": [1, None]}),
        (object, 5, 5),
        (dict, {"a": 1}, {"a": 1}),
        (dict[str, Any], {"a": 1}, {"a": 1}),
        (Mapping[str, float], {"a": 1}, {"a": 1.0}),
        (list, [1], [1]),
        (list[int], [1, 2], [1, 2]),
        (Sequence[str], ["a"], ["a"]),
        (tuple[int, ...], [1, 2], (1, 2)),
        (int, 7, 7),
        (float, 7, 7.0),
        (bool, True, True),
        (str | int, "a", "a"),
        (int | None, None, None),
        (Literal["a", 1], 1, 1),
        (Status, "paid", Status.PAID),
        (Cents, 7, 7),
        (datetime.datetime, "2026-01-31T12:00:00+00:00", datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)),
        (datetime.date, "2026-01-31", datetime.date(2026, 1, 31)),
        (decimal.Decimal, "1.10", decimal.Decimal("1.10")),
        (uuid.UUID, "12345678-1234-5678-1234-567812345678", uuid.UUID("12345678-1234-5678-1234-567812345678")),
        (Item, {"name": "pen", "price": 2, "unknown": 1}, Item("pen", 2.0)),
        (Shipment, {"order": 1, "items": []}, {"order": 1, "items": []}),
        (
            Model,
            {"number": 1, "at": "2026-01-31T12:00:00Z"},
            Model(number=1, at=datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)),
        ),
        (list[Struct], [{"number": 1}], [Struct(1)]),
        (Struct | None, None, None),
    ],
)
def test_json_becomes_the_annotated_type(annotation: Any, value: object, expected: object) -> None:
    decoded = decode(annotation, value)
    assert decoded == expected
    assert type(decoded) is type(expected)


def test_dataclasses_may_contain_themselves() -> None:
    value = {"number": 2, "items": [{"name": "pen", "price": 2}], "parent": {"number": 1, "items": []}}
    assert decode(Order, value) == Order(2, (Item("pen", 2.0),), Status.OPEN, Order(1, ()))


@pytest.mark.parametrize(
    ("annotation", "value", "message"),
    [
        (int, "7", "must be an integer, not a string"),
        (int, True, "must be an integer, not a boolean"),
        (float, None, "must be a number, not null"),
        (list[int], {}, "must be an array, not an object"),
        (dict[str, int], {"a": {"b": 1}}, "a: must be an integer, not an object"),
        (Item, {"name": "pen"}, "price missing"),
        (Item, [], "must be an object, not an array"),
        (
            Order,
            {"number": 1, "items": [{"name": "pen", "price": "2"}]},
            "items[0].price: must be a number, not a stri",
        ),
        (Order, {"number": 1, "items": [], "parent": {"number": "1"}}, "parent: items missing"),
        (Shipment, {"items": []}, "order missing"),
        (Status, "lost", "'lost' is not one of 'paid', 'open'"),
        (Literal["a"], "b", "'b' is not one of 'a'"),
        (Literal[1], True, "True is not one of 1"),
        (str | int, [], "does not match any type of"),
        (datetime.datetime, "now", "'now' is not a datetime"),
        (decimal.Decimal, "x", "'x' is not a Decimal"),
        (Model, {"number": 1}, "Field required"),
        (Struct, {}, "missing required field"),
    ],
)
def test_a_value_of_another_type_is_refused_with_its_place(annotation: Any, value: object, message: str) -> None:
    with pytest.raises(ValueError) as failure:  # noqa: PT011 - the message is compared below
        decode(annotation, value)
    assert message in str(failure.value)


def test_invalid_json_is_refused() -> None:
    decoder = decoder_of(Any)
    assert decoder is not None
    for data in (b"", b"{", b"NaN", b"\xff"):
        with pytest.raises(ValueError):  # noqa: PT011
            decoder(data)


class Opaque:
    pass


@dataclasses.dataclass
class WithOpaque:
    inner: Opaque


@pytest.mark.parametrize("annotation", [Opaque, list[Opaque], WithOpaque, dict[int, str], set[int], bytes | str])
def test_a_type_without_a_form_in_json_is_refused_with_the_remedy(annotation: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"pass value_deserializer|annotate bytes, or the decoded type"):
        decoder_of(annotation)


def test_a_struct_that_msgspec_cannot_decode_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="msgspec cannot decode"):
        decoder_of(Struct | Order)


@pytest.mark.parametrize("annotation", [Any, object, int | None, Model | None, None])
def test_annotations_with_none_accept_null(annotation: Any) -> None:
    assert accepts_null(annotation)


@pytest.mark.parametrize("annotation", [int, bytes, Model, str | int])
def test_other_annotations_do_not_accept_null(annotation: Any) -> None:
    assert not accepts_null(annotation)
