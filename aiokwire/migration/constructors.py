"""Rewrites what is constructed: the options of clients, and the values that are passed to Admin."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import libcst as cst
from libcst import matchers as m

from aiokwire.migration import rules
from aiokwire.migration.calls import has_stars, keywords, positional
from aiokwire.migration.nodes import as_keyword, code, is_atom, keyword, parsed, text_of, with_args

if TYPE_CHECKING:
    from aiokwire.migration.rewriter import Rewriter

_SSL_OPTIONS: Final[Mapping[str, str]] = {
    "cafile": "ssl_cafile",
    "certfile": "ssl_certfile",
    "keyfile": "ssl_keyfile",
    "password": "ssl_key_password",
}


def client(rewriter: Rewriter, kind: str, original: cst.Call, call: cst.Call) -> cst.Call:
    """Rewrite the options of a client."""
    args: list[cst.Arg] = []
    for before, arg in zip(original.args, call.args, strict=True):
        if before.star == "**":
            unpacked_options(rewriter, before)
        args += _option(rewriter, before, arg) if arg.keyword is not None else [arg]
    args += _login(rewriter, original, args)
    if rewriter.keep_defaults and not has_stars(original.args, "**"):
        args += _defaults(kind, args)
    return with_args(call, args)


def _option(rewriter: Rewriter, before: cst.Arg, arg: cst.Arg) -> list[cst.Arg]:
    assert before.keyword is not None
    name = before.keyword.value
    if name in rules.DROPPED_OPTIONS:
        if rules.DROPPED_OPTIONS[name] and code(before.value) != rules.UNREMARKABLE.get(name):
            rewriter.report(before, name, rules.DROPPED_OPTIONS[name])
        return []
    if name in rules.RENAMED_OPTIONS:
        return [as_keyword(arg, rules.RENAMED_OPTIONS[name])]
    convert = _CONVERTED.get(name)
    return [arg] if convert is None else convert(rewriter, before, arg)


def _assignors(rewriter: Rewriter, before: cst.Arg, arg: cst.Arg) -> list[cst.Arg]:
    """Name the assignors: classes become strings."""
    names = assignor_names(rewriter, before.value)
    if names is None:
        rewriter.report(before, "partition_assignment_strategy", 'name the assignors: "range", "roundrobin", "sticky"')
        return [arg]
    text = ", ".join(f'"{name}"' for name in names)
    return [arg.with_changes(value=parsed(text if len(names) == 1 else f"[{text}]"))]


def assignor_names(rewriter: Rewriter, node: cst.BaseExpression) -> list[str] | None:
    """Return the names of assignors in a list or tuple of their classes."""
    if not isinstance(node, (cst.List, cst.Tuple)) or not node.elements:
        return None
    references = [rewriter.program.reference(each.value) for each in node.elements]
    names = [rules.ASSIGNORS.get(each.name) if each is not None else None for each in references]
    return [each for each in names if each] if all(names) else None


def _partitioner(rewriter: Rewriter, before: cst.Arg, arg: cst.Arg) -> list[cst.Arg]:
    """Adapt a function of (key, partitions, available) to (topic, key, value, partitions)."""
    if is_default_partitioner(rewriter, before.value):
        return []
    if isinstance(before.value, cst.Name) and before.value.value == "None":
        return [arg]
    if not is_atom(before.value):
        rewriter.report(before, "partitioner", "pass a function of (topic, key, value, partitions)")
        return [arg]
    call = f"{code(arg.value)}(key, partitions, partitions)"
    return [arg.with_changes(value=parsed(f"lambda topic, key, value, partitions: {call}"))]


def is_default_partitioner(rewriter: Rewriter, node: cst.BaseExpression) -> bool:
    """Whether an expression is `DefaultPartitioner()`."""
    reference = rewriter.program.reference(node.func) if isinstance(node, cst.Call) else None
    return reference is not None and reference.name == "DefaultPartitioner"


def _tls_context(rewriter: Rewriter, before: cst.Arg, arg: cst.Arg) -> list[cst.Arg]:
    """Turn `create_ssl_context(...)` into options of the client, which renews the certificates."""
    call = before.value
    if not isinstance(call, cst.Call) or not is_tls_helper(rewriter, call) or not isinstance(arg.value, cst.Call):
        return [arg]
    if not call.args or not keywords(call.args).keys() <= _SSL_OPTIONS.keys() or positional(call.args):
        return [arg]
    return [keyword(_SSL_OPTIONS[name], each.value) for name, each in keywords(arg.value.args).items()]


def is_tls_helper(rewriter: Rewriter, call: cst.Call) -> bool:
    """Whether a call is of `create_ssl_context`."""
    reference = rewriter.program.reference(call.func)
    return reference is not None and reference.name == "create_ssl_context"


_CONVERTED: Final[Mapping[str, Callable[[Rewriter, cst.Arg, cst.Arg], list[cst.Arg]]]] = {
    "partition_assignment_strategy": _assignors,
    "partitioner": _partitioner,
    "ssl_context": _tls_context,
}


def _login(rewriter: Rewriter, original: cst.Call, args: Sequence[cst.Arg]) -> list[cst.Arg]:
    """Write down the mechanism PLAIN, aiokafka's default."""
    given = keywords(args)
    protocol = given.get("security_protocol")
    if protocol is None or "sasl_mechanism" in given or has_stars(original.args, "**"):
        return []
    text = text_of(protocol.value)
    if text is None and "sasl_plain_username" in given:
        rewriter.report(original, "sasl_mechanism", 'add sasl_mechanism="PLAIN" if the protocol is SASL_*')
    return [keyword("sasl_mechanism", parsed('"PLAIN"'))] if text is not None and text.startswith("SASL_") else []


def _defaults(kind: str, args: Sequence[cst.Arg]) -> list[cst.Arg]:
    """Return aiokafka's defaults for options that the program leaves out."""
    given = keywords(args)
    is_idempotent = "transactional_id" in given or (
        "enable_idempotence" in given and code(given["enable_idempotence"].value) != "False"
    )
    return [
        keyword(name, parsed(value))
        for name, value in rules.DEFAULTS[kind].items()
        if name not in given and not (name == "acks" and is_idempotent)
    ]


# --- values -----------------------------------------------------------------------------------------------------------


def new_topic(rewriter: Rewriter, original: cst.Call, call: cst.Call) -> cst.Call:
    """Rename the arguments of NewTopic."""
    renamed = {"num_partitions": "partitions", "topic_configs": "configs"}
    if len(positional(original.args)) > 3 or "replica_assignments" in keywords(original.args):
        rewriter.report(original, "NewTopic", "pass assignments=[[replica, ...], ...] by partition, and configs=")
    args = [
        as_keyword(each, renamed[each.keyword.value]) if each.keyword and each.keyword.value in renamed else each
        for each in call.args
    ]
    return with_args(call, args)


def plain_value(original: cst.Call) -> bool:
    """Whether `NewPartitions(count)` can be replaced by its argument."""
    return len(original.args) == 1 and not original.args[0].star


def tls_context(rewriter: Rewriter, call: cst.Call) -> cst.Call:
    """Turn `create_ssl_context` with authorities only into the function of the standard library."""
    rewriter.names.import_module("ssl")
    return call.with_changes(func=cst.Attribute(cst.Name("ssl"), cst.Name("create_default_context")))


def has_only_authorities(call: cst.Call) -> bool:
    """Whether a TLS context is created without a client certificate."""
    return not positional(call.args) and keywords(call.args).keys() <= {"cafile", "capath", "cadata"}


# --- **options --------------------------------------------------------------------------------------------------------

_CHANGED_OPTIONS: Final = {
    **{name: f"call it {new}" for name, new in rules.RENAMED_OPTIONS.items()},
    **dict.fromkeys(rules.DROPPED_OPTIONS, "leave it out"),
    "partition_assignment_strategy": 'name the assignors: "range", "roundrobin", "sticky"',
    "partitioner": "pass a function of (topic, key, value, partitions)",
}


def unpacked_options(rewriter: Rewriter, arg: cst.Arg) -> None:
    """Report the options of a dictionary that have to change, or that it is not known."""
    entries = _entries(rewriter, arg.value)
    if entries is None:
        changed = ", ".join([*rules.RENAMED_OPTIONS, *rules.DROPPED_OPTIONS])
        rewriter.report(arg, "**", f"check the options that are unpacked here; these change: {changed}")
        return
    for name, node in entries.items():
        if name in _CHANGED_OPTIONS:
            rewriter.report(node, name, _CHANGED_OPTIONS[name])
    if "security_protocol" in entries and "sasl_mechanism" not in entries and "sasl_plain_username" in entries:
        rewriter.report(entries["security_protocol"], "sasl_mechanism", 'add "sasl_mechanism": "PLAIN"')


def _entries(rewriter: Rewriter, node: cst.BaseExpression) -> dict[str, cst.CSTNode] | None:
    """Return the entries of `{...}` or `dict(...)` by key, or of a name for one of them."""
    if isinstance(node, cst.Name):
        values = _assigned(rewriter, node)
        return _entries(rewriter, values[0]) if len(values) == 1 and not isinstance(values[0], cst.Name) else None
    if isinstance(node, cst.Dict):
        keys = [text_of(each.key) if isinstance(each, cst.DictElement) else None for each in node.elements]
        pairs = zip(keys, node.elements, strict=True)
        return {key: each for key, each in pairs if key is not None} if all(keys) else None
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "dict":
        found = {each.keyword.value: each for each in node.args if each.keyword is not None}
        return dict(found) if len(found) == len(node.args) else None
    return None


def _assigned(rewriter: Rewriter, name: cst.Name) -> list[cst.BaseExpression]:
    """Return what is assigned to a name, in the whole module."""
    targets = m.AssignTarget(target=m.Name(name.value))
    found = m.findall(rewriter.program.module, m.Assign(targets=[m.ZeroOrMore(), targets, m.ZeroOrMore()]))
    annotated = m.findall(rewriter.program.module, m.AnnAssign(target=m.Name(name.value)))
    values = [each.value for each in (*found, *annotated) if isinstance(each, (cst.Assign, cst.AnnAssign))]
    return [each for each in values if each is not None]
