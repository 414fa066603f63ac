"""Message definitions to the text of Python modules, one for each API or data message.

The text is finished by ruff (imports, layout): see `__main__`.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import indent

from tools.protocol_generator.accessors import accessors, later_fields, struct_definitions
from tools.protocol_generator.definitions import Field, Message, Versions, snake_case
from tools.protocol_generator.fields import default_of, differs, guard_for, outside_of, python_type

METHODS = {"bool": "boolean", "bytes": "bytes_"}
RESERVED = {"Request", "Response", "Struct", "Data", "VersionRange", "ApiKey", "Buffer", "Message", "Self"}
HEAD = "Generated from the definitions of Kafka {releases} by `make generate`; do not edit."


@dataclass(frozen=True)
class Shape:
    """A struct, or a message's top level, as a class to write."""

    name: str
    where: str
    versions: Versions
    flexible_from: int
    fields: tuple[Field, ...]

    @property
    def plain_fields(self) -> list[Field]:
        return [item for item in self.fields if item.tag is None]

    @property
    def tagged_fields(self) -> list[Field]:
        return sorted((item for item in self.fields if item.tag is not None), key=lambda item: item.tag or 0)

    @property
    def ordered(self) -> list[Field]:
        return self.plain_fields + self.tagged_fields

    @property
    def has_tags(self) -> bool:
        return self.flexible_from <= self.versions.max


def module(messages: list[Message], releases: str) -> str:
    """The text of one module: structs above their owners, a response above its request."""
    first = messages[-1]
    taken = _collisions(messages)
    classes: dict[str, str] = {}
    for message in messages:
        renamed = {name: message.name + name for name in taken}
        *structs, top = _shapes(message, renamed)
        for shape in structs:
            text = _class(shape, "Struct", [], [])
            if classes.setdefault(shape.name, text).split('"""')[2] != text.split('"""')[2]:
                raise ValueError(f"two structs are called {shape.name}")
        classes[message.name] = _class(top, _base(message), _facts(message), accessors(message))
    return "\n\n".join(
        [
            f'"""{_title(first)}\n\n{HEAD.format(releases=releases)}\n"""',
            "from __future__ import annotations\n",
            "from collections.abc import Iterator, Mapping\nfrom typing import ClassVar, Self",
            "from aiokwire.protocol._codec import PlainReader, PlainWriter\n"
            "from aiokwire.protocol.api import (\n    EMPTY, ZERO_UUID, Buffer, Data, Request, Response, Struct,"
            " UnknownTags, VersionRange,\n)\nfrom aiokwire.protocol.api_key import ApiKey",
            *classes.values(),
        ]
    )


def api_keys(requests: list[Message], releases: str) -> str:
    """The text of the enum of all APIs."""
    lines = [f"    {snake_case(item.name.removesuffix('Request')).upper()} = {item.api_key}" for item in requests]
    return "\n".join(
        [
            f'"""The numbers of all APIs.\n\n{HEAD.format(releases=releases)}\n"""',
            "from enum import IntEnum\n\n",
            "class ApiKey(IntEnum):",
            '    """The first field of every request. A name in lower case is the module of its messages."""\n',
            *lines,
            "",
        ]
    )


def _title(message: Message) -> str:
    name = message.name.removesuffix("Request")
    key = "" if message.api_key is None else f" (key {message.api_key})"
    flexible = (
        f"flexible from {message.flexible_from}" if message.flexible_from <= message.versions.max else "not flexible"
    )
    return f"{name}{key}, versions {message.versions}, {flexible}."


def _base(message: Message) -> str:
    if message.role == "request":
        return f"Request[{message.name.removesuffix('Request')}Response]"
    return "Response" if message.role == "response" else "Data"


def _facts(message: Message) -> list[str]:
    versions = message.versions
    lines = []
    if message.api_key is not None:
        api = message.name.removesuffix("Request").removesuffix("Response")
        lines.append(f"API: ClassVar[ApiKey] = ApiKey.{snake_case(api).upper()}")
    versions_with_flexible = f"{versions.min}, {versions.max}, flexible={message.flexible_from}"
    lines.append(f"VERSIONS: ClassVar[VersionRange] = VersionRange({versions_with_flexible})")
    if message.role == "request":
        response = f"{message.name.removesuffix('Request')}Response"
        lines.append(f"SERVED_FROM: ClassVar[int | None] = {message.served_from}")
        lines.append(f"UNSTABLE_FROM: ClassVar[int | None] = {message.unstable_from}")
        lines.append(f"LISTENERS: ClassVar[tuple[str, ...]] = {message.listeners!r}")
        lines.append(f"RESPONSE: ClassVar[type[{response}]] = {response}")
        if later := later_fields(message):
            lines.append(f"FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {later!r}")
    return lines


def _collisions(messages: list[Message]) -> set[str]:
    """Struct names that mean different things in a request and its response."""
    tables = [struct_definitions(message) for message in messages]
    names = {name for table in tables for name in table}
    differing = {
        name for name in names if len({repr(table[name]) for table in tables if name in table}) > 1 or name in RESERVED
    }
    # A struct that holds a renamed one has to be renamed with it.
    while True:
        more = {
            name
            for name in names - differing
            if sum(name in table for table in tables) > 1
            and any(item.kind in differing for table in tables for item in table.get(name, ()))
        }
        if not more:
            return differing
        differing |= more


def _shapes(message: Message, renamed: dict[str, str]) -> list[Shape]:
    """Every struct of a message above the one that holds it, and the message itself last."""
    definitions = struct_definitions(message)
    ranges: dict[str, Versions] = {}
    places: dict[str, str] = {}
    order: list[str] = []

    def visit(owner: str, fields: tuple[Field, ...], versions: Versions) -> None:
        for item in fields:
            inside = item.versions & versions
            if item.is_struct and inside:
                ranges[item.kind] = ranges.get(item.kind, inside) | inside
                places.setdefault(item.kind, f"{owner}.{item.name}")
                visit(renamed.get(item.kind, item.kind), definitions[item.kind], inside)
                if item.kind not in order:
                    order.append(item.kind)

    visit(message.name, message.fields, message.versions)
    shapes = [
        Shape(
            renamed.get(name, name),
            f"Stands in `{places[name]}`.",
            ranges[name],
            message.flexible_from,
            _clipped(definitions[name], ranges[name], renamed),
        )
        for name in order
    ]
    where = "Data that stands inside other messages."
    if message.role == "request":
        where = f"Answered by `{message.name.removesuffix('Request')}Response`."
    elif message.role == "response":
        where = f"Answers `{message.name.removesuffix('Response')}Request`."
    top = Shape(
        message.name,
        where,
        message.versions,
        message.flexible_from,
        _clipped(message.fields, message.versions, renamed),
    )
    return [*shapes, top]


def _clipped(fields: tuple[Field, ...], versions: Versions, renamed: dict[str, str]) -> tuple[Field, ...]:
    """The fields that exist in `versions`, with their ranges cut to it."""
    return tuple(
        Field(
            item.name + "_" if keyword.iskeyword(item.name) else item.name,
            renamed.get(item.kind, item.kind),
            item.is_array,
            item.versions & versions,
            item.nullable & item.versions & versions,
            item.default,
            item.ignorable,
            item.tag,
            item.fields,
        )
        for item in fields
        if item.versions & versions
    )


def _class(shape: Shape, base: str, facts: list[str], methods: list[str]) -> str:
    names = [item.name for item in shape.ordered] + (["unknown_tags"] if shape.has_tags else [])
    slots = ", ".join(map(repr, names)) + ("," if len(names) == 1 else "")
    lines = [f'"""{shape.where}"""', "", *facts, f"__slots__ = ({slots})", ""]
    lines += [*_init(shape), "", *_encode(shape), "", *_decode(shape), *methods]
    return f"class {shape.name}({base}):\n" + indent("\n".join(lines), "    ") + "\n"


def _runs(shape: Shape) -> Iterator[tuple[str, list[Field]]]:
    """Neighbours that exist in the same versions share one guard."""
    run: list[Field] = []
    for item in shape.plain_fields:
        if run and run[0].versions != item.versions:
            yield guard_for(run[0].versions, shape.versions), run
            run = []
        run.append(item)
    if run:
        yield guard_for(run[0].versions, shape.versions), run


# --- the three methods -----------------------------------------------------------------------------------------------


def _init(shape: Shape) -> list[str]:
    parameters = []
    body = []
    for item in shape.ordered:
        default = default_of(item)
        value = item.name
        kind = python_type(item)
        if default == "[]":
            default, value = "EMPTY", f"[] if {item.name} is EMPTY else {item.name}"
        elif default.endswith("()"):
            default, value, kind = "None", f"{default} if {item.name} is None else {item.name}", f"{kind} | None"
        note = "" if item.versions == shape.versions else f"v{_open_ended(item.versions, shape.versions)}"
        if item.tag is not None:
            note = f"{note}, tag {item.tag}" if note else f"tag {item.tag}"
        parameters.append(f"    {item.name}: {kind} = {default},{f'  # {note}' if note else ''}")
        body.append(f"    self.{item.name}: {python_type(item)} = {value}")
    if shape.has_tags:
        parameters.append("    unknown_tags: UnknownTags = (),")
        body.append("    self.unknown_tags: UnknownTags = unknown_tags")
    if not parameters:
        return ["def __init__(self) -> None:", "    pass"]
    return ["def __init__(", "    self,", "    *,", *parameters, ") -> None:", *body]


def _open_ended(versions: Versions, within: Versions) -> str:
    return f"{versions.min}+" if versions.max == within.max else str(versions)


def _encode(shape: Shape) -> list[str]:
    body: list[str] = []
    for guard, run in _runs(shape):
        lines = [line for item in run for line in _write(item, "out", shape.versions)]
        if not guard:
            body += lines
            continue
        body += [f"if {guard}:", *(f"    {line}" for line in lines)]
        for item in run:
            if not item.ignorable:
                body += [f"elif {differs(item)}:", f'    raise self.unsupported("{item.name}", version)']
    if shape.tagged_fields:
        body.append("known: list[tuple[int, PlainWriter]] = []")
        for item in shape.tagged_fields:
            body += _write_tagged(item, shape)
        body.append("out.tags(self.unknown_tags, known)")
    elif shape.has_tags:
        body.append("out.tags(self.unknown_tags)")
    return ["def encode(self, out: PlainWriter, version: int) -> None:", *(f"    {line}" for line in body or ["pass"])]


def _write(item: Field, out: str, within: Versions) -> list[str]:
    value = f"self.{item.name}"
    lines = []
    if item.nullable and item.nullable != item.versions:
        condition = outside_of(item.nullable, within)
        lines += [f"if {value} is None and {condition}:", f'    raise self.unsupported("{item.name}", version)']
    null = "nullable_" if item.nullable else ""
    if not item.is_struct:
        method = METHODS.get(item.kind, item.kind)
        if item.is_array:
            method = f"{null}{item.kind}s"
        elif item.kind in ("string", "bytes", "records"):
            method = f"{null}{item.kind}" if null else method
        return [*lines, f"{out}.{method}({value})"]
    if item.is_array:
        length = f"-1 if {value} is None else len({value})" if null else f"len({value})"
        items = f"{value} or ()" if null else value
        return [
            *lines,
            f"{out}.{null}array_length({length})",
            f"for {snake_case(item.kind)} in {items}:",
            f"    {snake_case(item.kind)}.encode({out}, version)",
        ]
    if null:
        return [
            *lines,
            f"{out}.present({value} is not None)",
            f"if {value} is not None:",
            f"    {value}.encode({out}, version)",
        ]
    return [*lines, f"{value}.encode({out}, version)"]


def _write_tagged(item: Field, shape: Shape) -> list[str]:
    condition = differs(item)
    lines = []
    if item.versions != shape.versions:
        if item.ignorable:
            condition += f" and {guard_for(item.versions, shape.versions)}"
        else:
            lines += [
                f"if {outside_of(item.versions, shape.versions)}:",
                f'    raise self.unsupported("{item.name}", version)',
            ]
    lines += ["field = out.nested()", *_write(item, "field", shape.versions), f"known.append(({item.tag}, field))"]
    return [f"if {condition}:", *(f"    {line}" for line in lines)]


def _decode(shape: Shape) -> list[str]:
    body = ["self = cls.__new__(cls)"]
    for guard, run in _runs(shape):
        reads = [_read(item, "src", shape.versions) for item in run]
        if not guard:
            body += [line for lines in reads for line in lines]
        elif len(run) == 1 and len(reads[0]) == 1:
            body.append(f"{reads[0][0]} if {guard} else {default_of(run[0])}")
        else:
            body += [f"if {guard}:", *(f"    {line}" for lines in reads for line in lines)]
            body += ["else:", *(f"    self.{item.name} = {default_of(item)}" for item in run)]
    if shape.tagged_fields:
        body += _read_tagged(shape)
    elif shape.has_tags:
        body.append("self.unknown_tags = src.tags()")
    return [
        "@classmethod",
        "def decode(cls, src: PlainReader, version: int) -> Self:",
        *(f"    {line}" for line in body),
        "    return self",
    ]


def _read(item: Field, src: str, within: Versions) -> list[str]:
    """Statements that set the field; a single one is an assignment that a condition may follow."""
    target = f"self.{item.name} = "
    partly = item.nullable and item.nullable != item.versions
    sometimes = guard_for(item.nullable, within) if partly else ""
    if not item.is_struct:
        plain = f"{item.kind}s" if item.is_array else METHODS.get(item.kind, item.kind)
        null = plain
        if item.is_array or item.kind in ("string", "bytes", "records"):
            null = f"nullable_{item.kind}s" if item.is_array else f"nullable_{item.kind}"
        if partly:
            value = f"({src}.{null}() if {sometimes} else {src}.{plain}())"
        else:
            value = f"{src}.{null if item.nullable else plain}()"
        return [f"{target}{value}"]
    if item.is_array:
        whole = f"{src}.structs({item.kind}, version)"
        null = f"{src}.nullable_structs({item.kind}, version)"
        if partly:
            return [f"{target}({null} if {sometimes} else {whole})"]
        return [f"{target}{null if item.nullable else whole}"]
    value = f"{item.kind}.decode({src}, version)"
    return [f"{target}({value} if {src}.present() else None)" if item.nullable else f"{target}{value}"]


def _read_tagged(shape: Shape) -> list[str]:
    lines = [f"self.{item.name} = {default_of(item)}" for item in shape.tagged_fields]
    lines += ["unknown = []", "for tag, field in src.tagged():"]
    word = "if"
    for item in shape.tagged_fields:
        guard = guard_for(item.versions, Versions(max(shape.versions.min, shape.flexible_from), shape.versions.max))
        condition = f"tag == {item.tag}" + (f" and {guard}" if guard else "")
        lines.append(f"    {word} {condition}:")
        lines += [f"        {line}" for line in _read(item, "field", shape.versions)]
        word = "elif"
    return [
        *lines,
        "    else:",
        "        unknown.append((tag, field.rest()))",
        "    field.end()",
        "self.unknown_tags = tuple(unknown)",
    ]
