"""Rebalance listeners: the methods of subclasses, and what calls them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import libcst as cst
from libcst import matchers as m

from aiokwire.migration.program import dotted

if TYPE_CHECKING:
    from aiokwire.migration.rewriter import Rewriter

_METHODS: Final = {"on_partitions_revoked": "revoked", "on_partitions_assigned": "assigned"}
_ADVICE: Final = {
    "on_partitions_assigned": "assigned() receives only the partitions that are new",
    "on_partitions_revoked": "revoked() receives only the partitions that move, and at close() all; lost() calls it",
}
_BASE: Final = "ConsumerRebalanceListener"


class Listeners:
    """The rebalance listeners of a module."""

    def __init__(self, rewriter: Rewriter) -> None:
        self._rewriter = rewriter
        self._classes = self._find()

    def _find(self) -> set[cst.ClassDef]:
        """Return the subclasses of ConsumerRebalanceListener, and their subclasses."""
        program = self._rewriter.program
        found: set[cst.ClassDef] = set()
        names: set[str] = set()
        for node in m.findall(program.module, m.ClassDef()):  # in the order of the module
            assert isinstance(node, cst.ClassDef)
            bases = [each.value for each in node.bases]
            references = [program.reference(each) for each in bases]
            is_listener = any(each is not None and each.name == _BASE for each in references)
            if is_listener or any(dotted(each) in names for each in bases):
                found.add(node)
                names.add(node.name.value)
        return found

    def renamed_method(self, original: cst.FunctionDef, updated: cst.FunctionDef) -> cst.FunctionDef:
        """Rename a method of a listener, and make it a coroutine function."""
        name = original.name.value
        if name not in _METHODS or not self._is_in_listener(original):
            return updated
        self._rewriter.report(original, name, _ADVICE[name])
        is_async = updated.asynchronous or cst.Asynchronous(whitespace_after=cst.SimpleWhitespace(" "))
        return updated.with_changes(name=cst.Name(_METHODS[name]), asynchronous=is_async)

    def _is_in_listener(self, node: cst.CSTNode) -> bool:
        nearest = next(
            (each for each in self._rewriter.program.ancestors(node) if isinstance(each, cst.ClassDef)), None
        )
        return nearest in self._classes

    def renamed_attribute(self, original: cst.Attribute, updated: cst.Attribute) -> cst.BaseExpression:
        """Rename a call of another method of the listener, which is a coroutine now."""
        name = original.attr.value
        is_own = isinstance(original.value, cst.Name) and original.value.value == "self"
        if name not in _METHODS or not is_own or not self._is_in_listener(original):
            return updated
        program = self._rewriter.program
        if not isinstance(program.parent(program.parent(original)), cst.Await):
            self._rewriter.report(original, name, f"{_METHODS[name]}() is a coroutine: await it")
        return updated.with_changes(attr=cst.Name(_METHODS[name]))
