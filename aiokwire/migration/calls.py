"""How calls of methods are rewritten: a function for each, found by kind of client and name.

A function receives a `Site` and returns the new expression, or None to leave the call unchanged
(it has reported why). Functions in `AWAITED` replace the `await` around the call, too.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import libcst as cst

from aiokwire.migration import rules
from aiokwire.migration.nodes import (
    as_keyword,
    awaited,
    code,
    is_atom,
    keyword,
    method_call,
    needs_parentheses,
    parsed,
    text_of,
    with_args,
)

if TYPE_CHECKING:
    from aiokwire.migration.rewriter import Rewriter


@dataclasses.dataclass(frozen=True, slots=True)
class Site:
    """A call of a client's method: as it was, and with its arguments already rewritten."""

    rewriter: Rewriter
    original: cst.Call
    call: cst.Call
    kind: str

    @property
    def method(self) -> str:
        assert isinstance(self.original.func, cst.Attribute)
        return self.original.func.attr.value

    @property
    def receiver(self) -> str:
        """The text of the object whose method is called."""
        assert isinstance(self.call.func, cst.Attribute)
        return code(self.call.func.value)

    @property
    def parent(self) -> cst.CSTNode:
        return self.rewriter.program.parent(self.original)

    @property
    def is_awaited(self) -> bool:
        return isinstance(self.parent, cst.Await)

    @property
    def is_statement(self) -> bool:
        """Whether the result, after an `await`, is not used."""
        place: cst.CSTNode = self.parent if self.is_awaited else self.original
        return isinstance(self.rewriter.program.parent(place), cst.Expr)

    def report(self, advice: str) -> None:
        self.rewriter.report(self.original, self.method, advice)


Rewrite = Callable[[Site], "cst.BaseExpression | None"]


def positional(args: Sequence[cst.Arg]) -> list[cst.Arg]:
    """Return the arguments without a keyword."""
    return [each for each in args if each.keyword is None and not each.star]


def keywords(args: Sequence[cst.Arg]) -> dict[str, cst.Arg]:
    """Return the arguments by keyword."""
    return {each.keyword.value: each for each in args if each.keyword is not None}


def has_stars(args: Sequence[cst.Arg], star: str = "*") -> bool:
    """Whether arguments are unpacked: from a sequence, or with `**` from a mapping."""
    return any(each.star.startswith(star) for each in args)


def seconds(node: cst.BaseExpression) -> cst.BaseExpression:
    """Return milliseconds as seconds."""
    if isinstance(node, cst.Integer):
        return parsed(repr(node.evaluated_value / 1000).removesuffix(".0"))
    if isinstance(node, (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.Float)) or node.lpar:
        return parsed(f"{code(node)} / 1000")
    return parsed(f"({code(node)}) / 1000")


# --- producer ---------------------------------------------------------------------------------------------------------

_SEND_PARAMETERS: Final = ("topic", "value", "key", "partition", "timestamp", "headers")


def _send_args(args: Sequence[cst.Arg]) -> list[cst.Arg]:
    """Turn the fourth and later positions into keywords, and `timestamp_ms` into `timestamp`."""
    found = []
    for index, arg in enumerate(args):
        if arg.star:
            found.append(arg)
        elif arg.keyword is None:
            found.append(arg if index < 3 else as_keyword(arg, _SEND_PARAMETERS[index]))
        elif arg.keyword.value == "timestamp_ms":
            found.append(as_keyword(arg, "timestamp"))
        else:
            found.append(arg)
    return found


def _send(site: Site) -> cst.BaseExpression:
    if has_stars(site.call.args):
        site.report("check what is unpacked here: timestamp_ms is timestamp, and partition, ... are keywords")
    method = {"send": "submit", "send_and_wait": "send"}[site.method]
    return with_args(method_call(site.call, method), _send_args(site.call.args))


def _partitions_for(site: Site) -> cst.BaseExpression:
    """The set of numbers is a count; `len` of it is the count itself."""
    program = site.rewriter.program
    around = program.parent(program.parent(program.parent(site.original)))
    if isinstance(around, cst.Call) and is_length_of_partitions(site.rewriter, around):
        return awaited(site.call)
    return parsed(f"set(range(await {code(site.call)}))")


def is_length_of_partitions(rewriter: Rewriter, call: cst.Call) -> bool:
    """Whether a call is `len(await producer.partitions_for(topic))`."""
    if not isinstance(call.func, cst.Name) or call.func.value != "len" or len(call.args) != 1:
        return False
    inner = call.args[0].value
    if not isinstance(inner, cst.Await) or not isinstance(inner.expression, cst.Call):
        return False
    site = rewriter.site(inner.expression, inner.expression)
    return site is not None and (site.kind, site.method) == (rules.PRODUCER, "partitions_for")


def _send_offsets(site: Site) -> cst.BaseExpression | None:
    block = site.rewriter.transaction_around(site.original)
    if block is None:
        site.report(rules.ADVICE[rules.PRODUCER][site.method])
        return None
    args = [_offsets_argument(site, each) if index == 0 else each for index, each in enumerate(site.call.args)]
    renamed = [
        as_keyword(each, "group") if each.keyword and each.keyword.value == "group_id" else each for each in args
    ]
    called = site.call.with_changes(func=cst.Attribute(cst.Name(block), cst.Name("send_offsets")))
    return with_args(called, renamed)


# --- consumer: positions and offsets ----------------------------------------------------------------------------------


def _offsets_argument(site: Site, arg: cst.Arg) -> cst.Arg:
    """Turn pairs of offset and metadata into OffsetAndMetadata."""
    if not isinstance(arg.value, cst.Dict):
        return arg
    elements = [
        each.with_changes(value=_offset(site, each.value)) if isinstance(each, cst.DictElement) else each
        for each in arg.value.elements
    ]
    return arg.with_changes(value=arg.value.with_changes(elements=elements))


def _offset(site: Site, node: cst.BaseExpression) -> cst.BaseExpression:
    if not isinstance(node, cst.Tuple):
        return node
    name = site.rewriter.names.add("OffsetAndMetadata")
    return cst.Call(cst.Name(name), [cst.Arg(each.value, comma=each.comma) for each in node.elements])


def _commit(site: Site) -> cst.BaseExpression:
    return with_args(site.call, [_offsets_argument(site, each) for each in site.call.args])


def _committed(site: Site) -> cst.BaseExpression | None:
    """One partition's offset, in place of a dictionary of OffsetAndMetadata."""
    if len(site.call.args) != 1 or not _is_repeatable(site.call.args[0].value):
        site.report("returns {partition: OffsetAndMetadata or None}: take the offset of the partition from it")
        return None
    partition = code(site.call.args[0].value)
    return parsed(f'getattr((await {site.receiver}.committed({partition}))[{partition}], "offset", None)')


def _is_repeatable(node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.Call):
        return code(node.func).endswith("TopicPartition") and all(is_atom(each.value) for each in node.args)
    return is_atom(node)


def _log_ends(site: Site) -> cst.BaseExpression:
    """What the last response of a fetch contained."""
    args = ", ".join(code(each.value) for each in site.call.args)
    site.report("is -1 before the first fetch, where aiokafka returns None")
    return parsed(f"{site.receiver}.log_ends({args}).{_LOG_ENDS[site.method]}")


_LOG_ENDS: Final = {
    "highwater": "high_watermark",
    "last_stable_offset": "last_stable_offset",
    "last_poll_timestamp": "fetched_at",
}


def _seek_to_committed(site: Site) -> cst.BaseExpression | None:
    if site.call.args or not site.is_statement:
        site.report(rules.ADVICE[rules.CONSUMER][site.method])
        return None
    return parsed(f"{site.receiver}.resume_from_committed({site.receiver}.positions())")


def _seek_to_end(site: Site) -> cst.BaseExpression:
    if not site.is_statement:
        site.report("returns None: it raises RequestTimedOut where aiokafka returns False")
    return site.call


def _pause(site: Site) -> cst.BaseExpression:
    if not site.call.args or has_stars(site.call.args):
        site.report("without partitions it applies to all of them, where aiokafka does nothing")
    return site.call


# --- consumer: what to read -------------------------------------------------------------------------------------------


def _property(site: Site) -> cst.BaseExpression:
    return site.call.func


def _async(site: Site, call: cst.Call) -> cst.BaseExpression | None:
    """Await what was a plain method; where that is not possible, call its `_nowait`."""
    if site.is_awaited:
        return call
    if site.rewriter.program.can_await(site.original):
        return awaited(call, parenthesized=needs_parentheses(site.parent, site.original))
    if site.method in ("subscribe", "assign"):
        return method_call(call, f"{site.method}_nowait")
    site.report("is a coroutine now: await it, in an async function")
    return None


def _plain_async(site: Site) -> cst.BaseExpression | None:
    return _async(site, site.call)


def _partitions_for_topic(site: Site) -> cst.BaseExpression | None:
    changed = _async(site, site.call)
    if changed is not None and not site.is_statement:
        site.report("raises for a topic that does not exist, where aiokafka returns None")
    return changed


def _subscribe(site: Site) -> cst.BaseExpression | None:
    """`subscribe(topics, pattern, listener)` becomes `await subscribe(*topics, listener=...)`."""
    given = {**dict(zip(("topics", "pattern", "listener"), positional(site.call.args), strict=False))}
    given |= keywords(site.call.args)
    if has_stars(site.call.args) or not given.keys() <= {"topics", "pattern", "listener"}:
        site.report("pass topics one by one, a pattern as re.compile(...), and await it")
        return None
    args: list[cst.Arg] = []
    if "pattern" in given and not _is_none(given["pattern"].value):
        pattern = _pattern(site, given["pattern"].value)
        if pattern is None:
            return None
        args.append(cst.Arg(pattern))
    elif "topics" in given:
        args += _topics(given["topics"].value)
    if "listener" in given:
        args.append(keyword("listener", given["listener"].value))
    call = site.call.with_changes(args=_on_one_line(args), whitespace_before_args=cst.SimpleWhitespace(""))
    return _async(site, call)


def _on_one_line(args: Sequence[cst.Arg]) -> list[cst.Arg]:
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    last = len(args) - 1
    return [
        each.with_changes(
            comma=cst.MaybeSentinel.DEFAULT if index == last else comma, whitespace_after_arg=cst.SimpleWhitespace("")
        )
        for index, each in enumerate(args)
    ]


def _topics(node: cst.BaseExpression) -> list[cst.Arg]:
    if isinstance(node, (cst.List, cst.Tuple, cst.Set)):
        return [cst.Arg(each.value, star="*" if isinstance(each, cst.StarredElement) else "") for each in node.elements]
    return [cst.Arg(node, star="*")]


def _pattern(site: Site, node: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return a compiled pattern for whole names: aiokafka's matches their beginnings."""
    text = text_of(node)
    if text is None or re.match(r"\(\?[a-zA-Z]+\)", text):
        site.report("pass re.compile(...) for whole names of topics: aiokafka's pattern matches their beginning")
        return None
    site.rewriter.names.import_module("re")
    whole = f"(?:{text}).*" if "|" in text else text if text.endswith((".*", ".+", "$")) else f"{text}.*"
    return parsed(f"re.compile({_literal(whole)})")


def _literal(text: str) -> str:
    """Return the source of a string, raw if it has backslashes."""
    return (
        f'r"{text}"'
        if "\\" in text and '"' not in text
        else '"' + repr(text)[1:-1] + '"'
        if '"' not in text
        else repr(text)
    )


def _is_none(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Name) and node.value == "None"


# --- consumer: records ------------------------------------------------------------------------------------------------


def _partitions_argument(args: Sequence[cst.Arg]) -> cst.Arg | None:
    """Return `partitions=[...]` for partitions that were passed one by one; none means all."""
    given = [each for each in args if each.keyword is None]
    if not given:
        return None
    items = ", ".join(f"{each.star}{code(each.value)}" for each in given)
    if len(given) == 1 and given[0].star:
        return keyword("partitions", parsed(f"[{items}] or None"))
    return keyword("partitions", parsed(f"[{items}]"))


def _getone(site: Site) -> cst.BaseExpression:
    partitions = _partitions_argument(site.call.args)
    if partitions is None:
        return awaited(site.call)
    return parsed(f"(await {site.receiver}.getmany(1, partitions={code(partitions.value)}))[0]")


def _getmany(site: Site) -> cst.BaseExpression | None:
    if has_stars(site.call.args, "**"):
        site.report("check the options that are unpacked here: timeout is in seconds, and by_partition=True is needed")
        return None
    named = keywords(site.call.args)
    args = []
    if "max_records" in named:
        args.append(named["max_records"])
    wait = seconds(named["timeout_ms"].value) if "timeout_ms" in named else cst.Integer("0")
    args.append(keyword("timeout", wait))
    partitions = _partitions_argument(site.call.args)
    if partitions is not None:
        args.append(partitions)
    args.append(keyword("by_partition", cst.Name("True")))
    return site.call.with_changes(args=_on_one_line(args), whitespace_before_args=cst.SimpleWhitespace(""))


# --- admin ------------------------------------------------------------------------------------------------------------


def _timeout_args(args: Sequence[cst.Arg], names: Sequence[str]) -> list[cst.Arg]:
    """Turn positions behind the first into keywords, and `timeout_ms` into `timeout`."""
    found = []
    for index, arg in enumerate(args):
        named = arg if arg.keyword is not None or arg.star or index == 0 else as_keyword(arg, names[index])
        if named.keyword is not None and named.keyword.value == "timeout_ms":
            if _is_none(named.value):
                continue
            named = as_keyword(named, "timeout").with_changes(value=seconds(named.value))
        found.append(named)
    return found


def _renamed_first(args: Sequence[cst.Arg], names: Mapping[str, str]) -> list[cst.Arg]:
    return [
        as_keyword(each, names[each.keyword.value]) if each.keyword and each.keyword.value in names else each
        for each in args
    ]


def _admin_change(site: Site) -> cst.BaseExpression:
    """create_topics, delete_topics."""
    if not site.is_statement:
        site.report("returns Results, which raise the error of a topic when it is read; check() raises the first")
    args = _timeout_args(site.call.args, ("", "timeout_ms", "validate_only"))
    renamed = {"delete_topics": {"topics": "names"}, "create_topics": {"new_topics": "topics"}}
    return with_args(site.call, _renamed_first(args, renamed[site.method]))


def _create_partitions(site: Site) -> cst.BaseExpression:
    args = _timeout_args(site.call.args, ("", "timeout_ms", "validate_only"))
    call = with_args(site.call, _renamed_first(args, {"topic_partitions": "counts"}))
    return parsed(f"(await {code(call)}).check()")


def _delete_records(site: Site) -> cst.BaseExpression:
    args = _timeout_args(site.call.args, ("", "timeout_ms"))
    return with_args(site.call, _renamed_first(args, {"records_to_delete": "before"}))


def _list_topics(site: Site) -> cst.BaseExpression:
    return parsed(f"[topic.name for topic in await {site.receiver}.list_topics(internal=True)]")


def _list_groups(site: Site) -> cst.BaseExpression | None:
    if site.call.args:
        site.report("use list_groups(), whose entries name their coordinator")
        return None
    return parsed(f"[(group.group_id, group.protocol_type) for group in await {site.receiver}.list_groups()]")


def _group_offsets(site: Site) -> cst.BaseExpression | None:
    if len(site.call.args) != 1 or has_stars(site.call.args):
        site.report("use list_group_offsets(group_id), which returns the offsets of all partitions")
        return None
    return method_call(site.call, "list_group_offsets")


def _close(site: Site) -> cst.BaseExpression:
    return method_call(site.call, "close")


# The functions whose result takes the place of the call.
CALLS: Final[Mapping[tuple[str, str], Rewrite]] = {
    (rules.PRODUCER, "stop"): _close,
    (rules.PRODUCER, "send"): _send,
    (rules.PRODUCER, "send_and_wait"): _send,
    (rules.PRODUCER, "send_offsets_to_transaction"): _send_offsets,
    (rules.CONSUMER, "stop"): _close,
    (rules.CONSUMER, "assign"): _plain_async,
    (rules.CONSUMER, "unsubscribe"): _plain_async,
    (rules.CONSUMER, "subscribe"): _subscribe,
    (rules.CONSUMER, "assignment"): _property,
    (rules.CONSUMER, "subscription"): _property,
    (rules.CONSUMER, "partitions_for_topic"): _partitions_for_topic,
    (rules.CONSUMER, "commit"): _commit,
    (rules.CONSUMER, "highwater"): _log_ends,
    (rules.CONSUMER, "last_stable_offset"): _log_ends,
    (rules.CONSUMER, "last_poll_timestamp"): _log_ends,
    (rules.CONSUMER, "seek_to_beginning"): _seek_to_end,
    (rules.CONSUMER, "seek_to_end"): _seek_to_end,
    (rules.CONSUMER, "pause"): _pause,
    (rules.CONSUMER, "resume"): _pause,
    (rules.CONSUMER, "getmany"): _getmany,
    (rules.ADMIN_CLIENT, "create_topics"): _admin_change,
    (rules.ADMIN_CLIENT, "delete_topics"): _admin_change,
    (rules.ADMIN_CLIENT, "delete_records"): _delete_records,
    (rules.ADMIN_CLIENT, "list_consumer_group_offsets"): _group_offsets,
}

# The functions whose result takes the place of `await call`.
AWAITED: Final[Mapping[tuple[str, str], Rewrite]] = {
    (rules.PRODUCER, "partitions_for"): _partitions_for,
    (rules.CONSUMER, "committed"): _committed,
    (rules.CONSUMER, "seek_to_committed"): _seek_to_committed,
    (rules.CONSUMER, "getone"): _getone,
    (rules.ADMIN_CLIENT, "create_partitions"): _create_partitions,
    (rules.ADMIN_CLIENT, "list_topics"): _list_topics,
    (rules.ADMIN_CLIENT, "list_consumer_groups"): _list_groups,
}
