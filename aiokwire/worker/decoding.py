"""From an annotation to the function that decodes a key or a value.

Models of pydantic and msgspec are recognized by their attributes: neither library is imported for
annotations that do not use it.
"""

from __future__ import annotations

import importlib
import json
import types
import typing
from collections.abc import Callable, Iterator
from typing import Annotated, Any, NoReturn, get_args, get_origin

from aiokwire.errors import ConfigurationError
from aiokwire.worker.json_values import converter_of

Decode = Callable[[bytes], Any]


def decoder_of(annotation: Any) -> Decode | None:
    """Return a function that decodes the bytes of a key or value; None if they stay bytes.

    `bytes` stays as it is and `str` is UTF-8. Everything else is JSON: scalars, lists, dicts,
    dataclasses, TypedDicts, enums, unions of them, `Any`; or a pydantic model or msgspec struct.

    Raises: ConfigurationError: the annotation has a type that cannot be decoded.
    """
    annotation = _plain(annotation)
    wanted = [_plain(one) for one in _members(annotation) if one is not type(None)]
    if wanted == [bytes]:
        return None
    if wanted == [str]:
        return _text
    if bytes in wanted:
        raise ConfigurationError(f"{annotation} is ambiguous: annotate bytes, or the decoded type")
    models = list(_models(annotation))
    if any(hasattr(model, "__pydantic_validator__") for model in models):
        decode: Decode = importlib.import_module("pydantic").TypeAdapter(annotation).validate_json
        return decode
    if models:
        return _struct_decoder(annotation)
    convert = converter_of(annotation)
    return lambda data: convert(json.loads(data, parse_constant=_refuse_constant))


def accepts_null(annotation: Any) -> bool:
    """Return whether a null key or value fits the annotation: `T | None`, `Any`, `object`."""
    annotation = _plain(annotation)
    return annotation in (Any, object, None) or type(None) in _members(annotation)


def _plain(annotation: Any) -> Any:
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return annotation


def _members(annotation: Any) -> tuple[Any, ...]:
    is_union = get_origin(annotation) in (typing.Union, types.UnionType)
    return get_args(annotation) if is_union else (annotation,)


def _models(annotation: Any) -> Iterator[Any]:
    """Yield the pydantic and msgspec classes in an annotation."""
    if hasattr(annotation, "__pydantic_validator__") or hasattr(annotation, "__struct_config__"):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)


def _struct_decoder(annotation: Any) -> Decode:
    msgspec = importlib.import_module("msgspec")
    try:
        decode: Decode = msgspec.json.Decoder(annotation).decode
    except TypeError as error:
        raise ConfigurationError(f"msgspec cannot decode {annotation}: {error}") from error
    return decode


def _text(data: bytes) -> str:
    return data.decode()


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
