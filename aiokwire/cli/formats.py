"""The output formats of `aiokwire consume`: a format string, or JSON lines."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Callable
from typing import Any, Protocol

from aiokwire.errors import InvalidArgument


class PrintedRecord(Protocol):
    """The attributes of a record that are printed."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def key(self) -> Any: ...
    @property
    def value(self) -> Any: ...
    @property
    def headers(self) -> tuple[tuple[str, bytes | None], ...]: ...


Format = Callable[[PrintedRecord], bytes]

# kcat's letters.
DIRECTIVES: dict[str, Format] = {
    "%": lambda _: b"%",
    "t": lambda record: record.topic.encode(),
    "p": lambda record: b"%d" % record.partition,
    "o": lambda record: b"%d" % record.offset,
    "T": lambda record: b"%d" % record.timestamp,
    "k": lambda record: record.key or b"",
    "s": lambda record: record.value or b"",
    "K": lambda record: b"%d" % (-1 if record.key is None else len(record.key)),
    "S": lambda record: b"%d" % (-1 if record.value is None else len(record.value)),
    "h": lambda record: b",".join(name.encode() + b"=" + (value or b"") for name, value in record.headers),
}


def compile_format(text: str) -> Format:
    """Return a function that formats a record.

    %t topic, %p partition, %o offset, %T timestamp in ms, %k key, %s value, %K and %S their lengths
    (-1 for null), %h headers, %% a percent sign, and \\n, \\t, \\0, \\xNN.

    Raises: InvalidArgument: a directive does not exist.
    """
    parts: list[Format] = []
    for literal, directive in re.findall(r"([^%]+)|%(.?)", text, re.DOTALL):
        if literal:
            plain = unescape(literal)
            parts.append(lambda _, plain=plain: plain)  # type: ignore[misc]  # the default binds this iteration's value
        elif directive in DIRECTIVES:
            parts.append(DIRECTIVES[directive])
        else:
            raise InvalidArgument(
                f"format {text!r}: no directive %{directive}; known: {' '.join('%' + d for d in DIRECTIVES)}"
            )
    return lambda record: b"".join([part(record) for part in parts])


def unescape(text: str) -> bytes:
    """Return the bytes of an argument with its \\n, \\t, \\r, \\0, \\\\ and \\xNN replaced."""
    return re.sub(rb"\\(n|t|r|0|\\|x[0-9a-fA-F]{2})", _escape, os.fsencode(text))


def _escape(match: re.Match[bytes]) -> bytes:
    name = match[1]
    if name.startswith(b"x"):
        return bytes([int(name[1:], 16)])
    return {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"0": b"\0", b"\\": b"\\"}[name]


def json_line(record: PrintedRecord) -> bytes:
    """Format a record as a JSON object; bytes that are not UTF-8 as base64 in `..._base64`.

    A header is [name, value], or [name, null, base64]. `aiokwire produce --json` reads the line.
    """
    fields: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
    }
    for name, data in (("key", record.key), ("value", record.value)):
        try:
            fields[name] = None if data is None else data.decode()
        except UnicodeDecodeError:
            fields[f"{name}_base64"] = base64.b64encode(data).decode()
    if record.headers:
        fields["headers"] = [_header(name, value) for name, value in record.headers]
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def _header(name: str, value: bytes | None) -> list[str | None]:
    try:
        return [name, None if value is None else value.decode()]
    except UnicodeDecodeError:
        return [name, None, base64.b64encode(value or b"").decode()]
