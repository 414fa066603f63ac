"""Turns `begin_transaction` and `commit_transaction` into a block, where the program allows it.

The result is still a program of aiokafka, which has `async with producer.transaction()`, too.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import libcst as cst
from libcst import matchers as m

from aiokwire.migration.nodes import code
from aiokwire.migration.program import Program
from aiokwire.migration.rules import PRODUCER
from aiokwire.migration.tracking import Kinds

_CALL = "begin_transaction", "commit_transaction", "abort_transaction"


def with_blocks(module: cst.Module) -> cst.Module:
    """Return the module with blocks for the transactions of producers."""
    begun = m.Attribute(attr=m.Name("begin_transaction"))
    if not m.findall(module, begun):
        return module
    program = Program(module)
    kinds = Kinds(program)
    producers: dict[str, bool] = {}  # by the text of the object: whether it is a producer everywhere
    for each in m.findall(program.module, begun):
        assert isinstance(each, cst.Attribute)
        text = code(each.value)
        producers[text] = producers.get(text, True) and kinds.of(each.value) == PRODUCER
    return program.module.visit(_Blocks({text for text, is_producer in producers.items() if is_producer}))


class _Blocks(cst.CSTTransformer):
    def __init__(self, producers: Collection[str]) -> None:
        super().__init__()
        self._producers = producers

    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> cst.BaseSuite:
        return updated_node.with_changes(body=self._grouped(updated_node.body))

    def _grouped(self, body: Sequence[cst.BaseStatement]) -> list[cst.BaseStatement]:
        """Replace the first transaction in a list of statements, then those behind it."""
        for index, each in enumerate(body):
            producer = _called(each, "begin_transaction")
            if producer is None or producer not in self._producers:
                continue
            block, rest = _block(producer, each, body[index + 1 :])
            if block is not None:
                return [*body[:index], block, *self._grouped(rest)]
        return list(body)


def _block(
    producer: str, begin: cst.BaseStatement, following: Sequence[cst.BaseStatement]
) -> tuple[cst.BaseStatement | None, Sequence[cst.BaseStatement]]:
    """Return the block for a transaction, and the statements behind it."""
    assert isinstance(begin, cst.SimpleStatementLine)
    for index, each in enumerate(following):
        if _called(each, "commit_transaction") == producer:
            inner = following[:index]
            return _with(producer, begin, inner), following[index + 1 :]
        if _uses(each, producer):
            break
    if following and isinstance(following[0], cst.Try):
        inner_of_try = _inner(producer, following[0])
        if inner_of_try is not None:
            return _with(producer, begin, inner_of_try), following[1:]
    return None, following


def _inner(producer: str, node: cst.Try) -> list[cst.BaseStatement] | None:
    """Return the work of `try: work; commit; except: abort; raise`; commit may be in `else`."""
    if node.finalbody is not None or len(node.handlers) != 1 or not isinstance(node.body, cst.IndentedBlock):
        return None
    if not _aborts(producer, node.handlers[0]):
        return None
    work = list(node.body.body)
    if node.orelse is None:
        if not work or _called(work[-1], "commit_transaction") != producer:
            return None
        work = work[:-1]
    elif not _is_commit(producer, node.orelse.body):
        return None
    return None if any(_uses(each, producer) for each in work) else work


def _aborts(producer: str, handler: cst.ExceptHandler) -> bool:
    """Whether a handler of all errors aborts, and raises the error again."""
    caught = None if handler.type is None else code(handler.type)
    if caught not in (None, "BaseException", "Exception") or not isinstance(handler.body, cst.IndentedBlock):
        return False
    body = handler.body.body
    return len(body) == 2 and _called(body[0], "abort_transaction") == producer and code(body[1]).strip() == "raise"


def _is_commit(producer: str, body: cst.BaseSuite) -> bool:
    return isinstance(body, cst.IndentedBlock) and len(body.body) == 1 and _called(body.body[0], _CALL[1]) == producer


def _uses(statement: cst.BaseStatement, producer: str) -> bool:
    """Whether a statement begins, commits or aborts a transaction of a producer."""
    found = m.findall(statement, m.Call(func=m.Attribute(attr=m.OneOf(*(m.Name(each) for each in _CALL)))))
    return any(isinstance(each, cst.Call) and isinstance(each.func, cst.Attribute) for each in found)


def _called(statement: cst.CSTNode, method: str) -> str | None:
    """Return the producer of the statement `await producer.method()`."""
    pattern = m.SimpleStatementLine(body=[m.Expr(m.Await(m.Call(func=m.Attribute(attr=m.Name(method)), args=[])))])
    if not m.matches(statement, pattern):
        return None
    attribute = m.findall(statement, m.Attribute(attr=m.Name(method)))[0]
    assert isinstance(attribute, cst.Attribute)
    return code(attribute.value)


def _with(producer: str, begin: cst.SimpleStatementLine, inner: Sequence[cst.BaseStatement]) -> cst.With:
    item = cst.WithItem(cst.Call(cst.Attribute(cst.parse_expression(producer), cst.Name("transaction"))))
    body = list(inner) or [cst.SimpleStatementLine([cst.Pass()])]
    return cst.With(
        [item],
        cst.IndentedBlock(body),
        asynchronous=cst.Asynchronous(),
        leading_lines=begin.leading_lines,
    )
