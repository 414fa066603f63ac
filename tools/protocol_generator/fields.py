"""The Python form of one field: its type, its default, and the conditions on versions.

Used by `emit`.
"""

from __future__ import annotations

from tools.protocol_generator.definitions import Field, Versions

PYTHON_TYPES = {
    "bool": "bool",
    "int8": "int",
    "int16": "int",
    "uint16": "int",
    "int32": "int",
    "int64": "int",
    "float64": "float",
    "string": "str",
    "uuid": "bytes",
    "bytes": "bytes",
    "records": "Buffer",
}


def is_optional(item: Field) -> bool:
    """Whether None is one of its values.

    An absent tagged struct is None, too, which avoids a struct of defaults.
    """
    return bool(item.nullable) or (item.is_struct and item.tag is not None and not item.is_array)


def python_type(item: Field) -> str:
    kind = PYTHON_TYPES.get(item.kind, item.kind)
    kind = f"list[{kind}]" if item.is_array else kind
    return f"{kind} | None" if is_optional(item) else kind


def default_of(item: Field) -> str:
    absent = item.tag is not None and item.is_struct and not item.is_array
    if item.default == "null" or absent or (item.kind == "records" and item.nullable):
        return "None"
    if item.is_array:
        return "[]"
    if item.is_struct:
        return f"{item.kind}()"
    if item.kind == "string":
        return repr(item.default or "")
    if item.kind in ("bytes", "records"):
        return 'b""'
    if item.kind == "uuid":
        return "ZERO_UUID"
    if item.kind == "bool":
        return str(str(item.default).lower() == "true")
    if item.kind == "float64":
        return repr(float(item.default or 0))
    return str(int(str(item.default), 0)) if item.default is not None else "0"


def differs(item: Field) -> str:
    """Return the condition that a field differs from its default."""
    default = default_of(item)
    value = f"self.{item.name}"
    if default == "None":
        return f"{value} is not None"
    if default in ("[]", '""', "''", 'b""', "False"):
        return f"({value} is None or {value})" if item.nullable else value
    if default == "True":
        return f"not {value}"
    return f"{value} != {default}"


def guard_for(versions: Versions, within: Versions) -> str:
    """Return the condition that a version of `within` is one of `versions`; empty if all are."""
    above = versions.min > within.min
    below = versions.max < within.max
    if above and below:
        if versions.min == versions.max:
            return f"version == {versions.min}"
        return f"{versions.min} <= version <= {versions.max}"
    if above:
        return f"version >= {versions.min}"
    return f"version <= {versions.max}" if below else ""


def outside_of(versions: Versions, within: Versions) -> str:
    """Return the condition that a version of `within` is not one of `versions`."""
    above = versions.min > within.min
    below = versions.max < within.max
    if above and below:
        return f"not {versions.min} <= version <= {versions.max}"
    return f"version < {versions.min}" if above else f"version > {versions.max}"
