"""The bytes of a test's values: the inverse of what a worker's handlers decode by annotation."""

from __future__ import annotations

import dataclasses
import enum
import importlib
import json
from typing import Any


def encoded(value: Any) -> bytes | None:
    """Return a key or value as bytes: `bytes` and None unchanged, `str` as UTF-8, others as JSON.

    JSON is written of dicts, lists, scalars, dataclasses, pydantic's models, msgspec's structs.

    Raises: TypeError: it has no form in JSON.
    """
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if hasattr(value, "__pydantic_serializer__"):
        return bytes(importlib.import_module("pydantic").TypeAdapter(type(value)).dump_json(value))
    if hasattr(value, "__struct_fields__"):
        return bytes(importlib.import_module("msgspec").json.encode(value))
    return json.dumps(value, default=_as_json).encode()


def _as_json(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if type(value).__module__ in ("uuid", "decimal"):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON: send bytes")
