"""Small functions that build and change nodes of a syntax tree, and keep its formatting."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

import libcst as cst

_NO_SPACE: Final = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
COMMA: Final = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))

ItemT = TypeVar("ItemT", cst.Arg, cst.ImportAlias, cst.Element)


def parsed(text: str) -> cst.BaseExpression:
    """Parse an expression."""
    return cst.parse_expression(text)


def name_of(text: str) -> cst.Name | cst.Attribute:
    """Build a dotted name."""
    first, *rest = text.split(".")
    node: cst.Name | cst.Attribute = cst.Name(first)
    for each in rest:
        node = cst.Attribute(node, cst.Name(each))
    return node


def code(node: cst.CSTNode) -> str:
    """Return the source text of a node."""
    return cst.Module([]).code_for_node(node)


def keyword(name: str, value: cst.BaseExpression) -> cst.Arg:
    """Build the argument `name=value`."""
    return cst.Arg(value=value, keyword=cst.Name(name), equal=_NO_SPACE)


def as_keyword(arg: cst.Arg, name: str) -> cst.Arg:
    """Give an argument a keyword, in place of its current one or its position."""
    return arg.with_changes(keyword=cst.Name(name), equal=arg.equal if arg.keyword is not None else _NO_SPACE)


def arranged(
    before: Sequence[ItemT], after: Iterable[ItemT], opening: cst.BaseParenthesizableWhitespace | None = None
) -> list[ItemT]:
    """Return arguments, aliases or elements with the commas of the list that they replace.

    `opening` is the whitespace behind the parenthesis: one argument per line stays that way.
    """
    items = list(after)
    if not items:
        return items
    between = _between(before, opening)
    known = {id(each.comma) for each in before[:-1]}
    for index, each in enumerate(items[:-1]):
        if id(each.comma) not in known:
            items[index] = _interior(each, between)
    items[-1] = _last(items[-1], before[-1]) if before else items[-1]
    return items


def _interior(item: ItemT, comma: cst.Comma) -> ItemT:
    """Put a comma behind what was the last item; the comment of its line stays."""
    line = _line_end(item)
    if line is not None and isinstance(comma.whitespace_after, cst.ParenthesizedWhitespace):
        comma = comma.with_changes(whitespace_after=comma.whitespace_after.with_changes(first_line=line))
    plain = item.with_changes(comma=comma)
    return plain.with_changes(whitespace_after_arg=cst.SimpleWhitespace("")) if isinstance(item, cst.Arg) else plain


def _last(item: ItemT, before: ItemT) -> ItemT:
    """End a list as it ended before; the comment of the item's line stays."""
    if item.comma is before.comma:
        return item
    line = _line_end(item)
    comma = before.comma
    if isinstance(comma, cst.Comma):
        comma = without_comment(comma)
        if line is not None:
            comma = comma.with_changes(whitespace_after=_with_line(comma.whitespace_after, line))
    ended = item.with_changes(comma=comma)
    if isinstance(before, cst.Arg) and not isinstance(comma, cst.Comma):
        after = before.whitespace_after_arg
        return ended.with_changes(whitespace_after_arg=after if line is None else _with_line(after, line))
    return ended


def _with_line(
    space: cst.BaseParenthesizableWhitespace, line: cst.TrailingWhitespace
) -> cst.BaseParenthesizableWhitespace:
    return space.with_changes(first_line=line) if isinstance(space, cst.ParenthesizedWhitespace) else space


def _line_end(item: cst.Arg | cst.ImportAlias | cst.Element) -> cst.TrailingWhitespace | None:
    """Return the end of the line of an item, if the next item is on another line."""
    space = item.comma.whitespace_after if isinstance(item.comma, cst.Comma) else None
    if space is None and isinstance(item, cst.Arg):
        space = item.whitespace_after_arg
    return space.first_line if isinstance(space, cst.ParenthesizedWhitespace) else None


def _between(before: Sequence[ItemT], opening: cst.BaseParenthesizableWhitespace | None) -> cst.Comma:
    """Return the comma between two items of a list."""
    for each in before[:-1]:
        if isinstance(each.comma, cst.Comma):
            return without_comment(each.comma)
    if isinstance(opening, cst.ParenthesizedWhitespace):
        return cst.Comma(whitespace_after=opening)
    return COMMA


def without_comment(comma: cst.Comma) -> cst.Comma:
    """Return a comma without the comment at the end of its line."""
    after = comma.whitespace_after
    if isinstance(after, cst.ParenthesizedWhitespace):
        line = after.first_line.with_changes(comment=None, whitespace=cst.SimpleWhitespace(""))
        return comma.with_changes(whitespace_after=after.with_changes(first_line=line, empty_lines=[]))
    return comma


def with_args(call: cst.Call, args: Iterable[cst.Arg]) -> cst.Call:
    """Return a call with other arguments."""
    items = arranged(call.args, args, call.whitespace_before_args)
    return call.with_changes(args=items)


def method_call(call: cst.Call, method: str) -> cst.Call:
    """Return a call of another method of the same object."""
    assert isinstance(call.func, cst.Attribute)
    return call.with_changes(func=call.func.with_changes(attr=cst.Name(method)))


def awaited(expression: cst.BaseExpression, *, parenthesized: bool = False) -> cst.Await:
    """Build `await expression`."""
    if parenthesized:
        return cst.Await(expression, lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return cst.Await(expression)


def needs_parentheses(parent: cst.CSTNode, node: cst.CSTNode) -> bool:
    """Whether an `await` in the place of `node` needs parentheses."""
    match parent:
        case cst.Attribute(value=value) | cst.Subscript(value=value) | cst.Call(func=value):
            return value is node
    return isinstance(parent, (cst.Await, cst.BinaryOperation))


def is_atom(node: cst.BaseExpression) -> bool:
    """Whether an expression can be repeated: it is cheap, and has no effects."""
    if isinstance(node, cst.Attribute):
        return is_atom(node.value)
    if isinstance(node, cst.Subscript):
        return is_atom(node.value)
    return isinstance(node, (cst.Name, cst.SimpleString, cst.Integer))


def text_of(node: cst.BaseExpression) -> str | None:
    """Return the value of a plain string."""
    return (
        node.evaluated_value if isinstance(node, cst.SimpleString) and isinstance(node.evaluated_value, str) else None
    )
