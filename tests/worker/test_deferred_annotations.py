"""Annotations that are evaluated when they are read (PEP 649), on CPython 3.14 and later."""

from __future__ import annotations

import sys
import textwrap
from typing import Any

import pytest

from aiokwire import Producer, Record
from aiokwire.errors import ConfigurationError
from aiokwire.worker import Handler

pytestmark = pytest.mark.skipif(sys.version_info < (3, 14), reason="annotations are evaluated where they stand")

RECORD = Record("orders", 1, 42, 1000, b"7", b'{"number": 7}', ())


def module(source: str) -> dict[str, Any]:
    """Return the names of a module without `from __future__ import annotations`."""
    names: dict[str, Any] = {"__name__": "users_module", "received": []}
    exec(compile(textwrap.dedent(source), "users_module.py", "exec", dont_inherit=True), names)
    return names


async def test_a_handler_may_name_a_type_that_is_defined_after_it() -> None:
    names = module(
        """
        import dataclasses

        async def paid(order: Order, context: aiokwire.Context) -> None:
            received.append(order.number)

        @dataclasses.dataclass
        class Order:
            number: int

        import aiokwire
        """
    )
    await Handler(names["paid"], "orders")(RECORD, object())  # type: ignore[arg-type]
    assert names["received"] == [7]


def test_a_type_that_only_type_checkers_know_is_a_mistake_with_its_name() -> None:
    names = module("async def paid(order: Hidden) -> None: ...")
    with pytest.raises(ConfigurationError, match="annotations cannot be evaluated: name 'Hidden' is not defined"):
        Handler(names["paid"], "orders")


async def test_a_serializer_may_have_annotations_that_only_type_checkers_know() -> None:
    names = module("def encoded(value: Hidden, topic: Topic, headers: Headers) -> bytes: return topic.encode()")
    producer = Producer("localhost:9092", value_serializer=names["encoded"])
    await producer.close()
