"""Which variables, attributes and parameters of a module hold clients of aiokafka.

Every assignment is an edge from a target to an expression, with or without a known kind. A name
counts as a client if each of its assignments is a client of that kind, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import libcst as cst
from libcst import matchers as m
from libcst import metadata as meta

from aiokwire.migration import rules
from aiokwire.migration.program import Program, dotted

MANY: Final = "*"  # the suffix of a kind: a collection of such objects
UNKNOWN: Final = "?"

Key = tuple[meta.Scope | None, str]
_WRAPPERS: Final = frozenset({"enter_async_context", "wait_for", "shield", "aclosing", "cast", "closing"})
_COLLECTIONS: Final = frozenset({
    "list", "List", "tuple", "Tuple", "set", "Set", "dict", "Dict", "Iterator", "AsyncIterator", "Iterable",
    "AsyncIterable", "Generator", "AsyncGenerator", "Sequence", "Mapping", "Collection", "frozenset",
})  # fmt: skip


class Kinds:
    """Answers which kind of client an expression is."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._names: dict[Key, set[str]] = {}
        self._attributes: dict[str, set[str]] = {}
        self._returns: dict[str, set[str]] = {}
        assignments = _Assignments(program)
        program.module.visit(assignments)
        self._functions = assignments.functions
        self._edges = assignments.edges
        for _ in range(8):  # each pass follows one more assignment; programs have few in a row
            if not self._pass():
                break
        self._pass(final=True)

    def of(self, node: cst.BaseExpression | None) -> str | None:
        """Return "producer", "consumer", "admin" or "record"; with "*" for a collection."""
        found = self._of(node)
        return None if found == UNKNOWN else found

    def _pass(self, *, final: bool = False) -> bool:
        changed = False
        for edge in self._edges:
            found = edge.kind or edge.unwrap(self._of(edge.value))
            if found is None and (not final or _is_none(edge.value)):
                continue
            changed |= self._add(edge.target, found or UNKNOWN)
        return changed

    def _add(self, target: cst.CSTNode | str, kind: str) -> bool:
        if isinstance(target, str):
            known = self._returns.setdefault(target, set())
        elif isinstance(target, cst.Name):
            scope = self._program.scope_of(target, target.value)
            known = self._names.setdefault((scope, target.value), set())
            if isinstance(scope, meta.ClassScope):
                self._attributes.setdefault(target.value, set()).add(kind)
        elif isinstance(target, cst.Attribute):
            known = self._attributes.setdefault(target.attr.value, set())
        else:
            return False
        before = len(known)
        known.add(kind)
        return len(known) > before

    def _of(self, node: cst.BaseExpression | None) -> str | None:  # noqa: PLR0911
        match node:
            case cst.Name():
                return _one(self._names.get((self._program.scope_of(node, node.value), node.value)))
            case cst.Attribute():
                return _one(self._attributes.get(node.attr.value))
            case cst.Call():
                return self._of_call(node)
            case cst.Await():
                return self._of(node.expression)
            case cst.NamedExpr():
                return self._of(node.value)
            case cst.BooleanOperation():
                return self._of(node.left) or self._of(node.right)
            case cst.IfExp():
                return self._of(node.body) or self._of(node.orelse)
            case cst.List() | cst.Tuple() | cst.Set():
                return _many(_one({self._of(each.value) or UNKNOWN for each in node.elements}))
            case cst.ListComp() | cst.GeneratorExp() | cst.SetComp():
                return _many(self._of(node.elt))
            case cst.DictComp():
                return _many(self._of(node.value))
            case cst.Subscript():
                return _single(self._of(node.value))
        return None

    def _of_call(self, node: cst.Call) -> str | None:
        reference = self._program.reference(node.func)
        if reference is not None:
            return rules.CLIENTS.get(reference.name)
        if isinstance(node.func, cst.Attribute):
            method, receiver = node.func.attr.value, self._of(node.func.value)
            if receiver == rules.CONSUMER:
                return {"getone": rules.RECORD}.get(method)
            if receiver is not None and receiver.endswith(MANY):
                return {"values": receiver, "pop": _single(receiver), "copy": receiver}.get(method)
        name = _last(node.func)
        if name in _WRAPPERS and node.args:
            return self._of(node.args[-1].value if name == "cast" else node.args[0].value)
        return _one(self._returns.get(name))


def annotated_kind(program: Program, node: cst.BaseExpression) -> str | None:
    """Return the kind of client that an annotation names."""
    if isinstance(node, cst.SimpleString):
        return _textual_kind(program, str(node.evaluated_value))
    reference = program.reference(node)
    if reference is not None:
        kind = rules.CLIENTS.get(reference.name)
        return rules.RECORD if reference.name == "ConsumerRecord" else kind
    if isinstance(node, cst.BinaryOperation):
        return annotated_kind(program, node.left) or annotated_kind(program, node.right)
    if isinstance(node, cst.Subscript):
        inner = [each.slice.value for each in node.slice if isinstance(each.slice, cst.Index)]
        kind = _first(annotated_kind(program, each) for each in inner)
        return _many(kind) if _last(node.value) in _COLLECTIONS else kind
    return None


def _textual_kind(program: Program, text: str) -> str | None:
    words = text.replace("[", " ").replace("]", " ").replace("|", " ").replace(".", " ").split()
    for each in program.bindings:
        if each.name in rules.CLIENTS and each.local in words:
            return rules.CLIENTS[each.name]
        if not each.name and each.local in words:
            return _first(rules.CLIENTS.get(word) for word in words)
    return None


def _unchanged(kind: str | None) -> str | None:
    return kind


def _element(kind: str | None) -> str | None:
    """Return the kind of what a loop over an object yields."""
    return rules.RECORD if kind == rules.CONSUMER else _single(kind)


def _entered(kind: str | None) -> str | None:
    """Return the kind of what a context manager returns."""
    return _single(kind) or kind


class Edge(NamedTuple):
    """An assignment: of an expression, or of a kind that is known from an annotation."""

    target: cst.CSTNode | str
    value: cst.BaseExpression | None
    kind: str | None = None
    unwrap: Callable[[str | None], str | None] = _unchanged


class _Assignments(cst.CSTVisitor):
    """Collects the edges of a module."""

    def __init__(self, program: Program) -> None:
        super().__init__()
        self._program = program
        self.edges: list[Edge] = []
        self.functions: dict[str, cst.FunctionDef] = _functions(program.module)

    def visit_Assign(self, node: cst.Assign) -> None:
        for each in node.targets:
            if isinstance(each.target, cst.Tuple) and isinstance(node.value, cst.Tuple):
                pairs = zip(each.target.elements, node.value.elements, strict=False)
                self.edges += [Edge(target.value, value.value) for target, value in pairs]
            else:
                self.edges.append(Edge(_stored(each.target), node.value, self._stored_kind(each.target, node.value)))

    def _stored_kind(self, target: cst.BaseExpression, value: cst.BaseExpression) -> str | None:
        """`clients[name] = AIOKafkaProducer()` makes a collection."""
        if not isinstance(target, cst.Subscript) or not isinstance(value, cst.Call):
            return None
        reference = self._program.reference(value.func)
        return None if reference is None else _many(rules.CLIENTS.get(reference.name))

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        kind = annotated_kind(self._program, node.annotation.annotation)
        if kind is not None or node.value is not None:
            self.edges.append(Edge(node.target, node.value, kind))

    def visit_NamedExpr(self, node: cst.NamedExpr) -> None:
        self.edges.append(Edge(node.target, node.value))

    def visit_WithItem(self, node: cst.WithItem) -> None:
        if node.asname is not None:
            self.edges.append(Edge(node.asname.name, node.item, unwrap=_entered))

    def visit_For(self, node: cst.For) -> None:
        self.edges.append(Edge(node.target, node.iter, unwrap=_element))

    def visit_CompFor(self, node: cst.CompFor) -> None:
        self.edges.append(Edge(node.target, node.iter, unwrap=_element))

    def visit_Param(self, node: cst.Param) -> None:
        if node.annotation is not None:
            kind = annotated_kind(self._program, node.annotation.annotation)
            self.edges.append(Edge(node.name, node.default, kind or UNKNOWN))

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        if node.returns is not None:
            kind = annotated_kind(self._program, node.returns.annotation)
            if kind is not None:
                self.edges.append(Edge(node.name.value, None, kind))

    def visit_Return(self, node: cst.Return) -> None:
        self._add_result(node, node.value)

    def visit_Yield(self, node: cst.Yield) -> None:
        if isinstance(node.value, cst.BaseExpression):
            self._add_result(node, cst.List([cst.Element(node.value)]))

    def _add_result(self, node: cst.CSTNode, value: cst.BaseExpression | None) -> None:
        function = self._program.function(node)
        if isinstance(function, cst.FunctionDef) and function.returns is None and value is not None:
            self.edges.append(Edge(function.name.value, value))

    def visit_Call(self, node: cst.Call) -> None:
        """Arguments of calls within the module give parameters without annotations their kind."""
        is_method = isinstance(node.func, cst.Attribute)
        function = self.functions.get(_last(node.func))
        if function is None or (is_method and dotted(node.func).partition(".")[0] not in ("self", "cls")):
            return
        params = [each for each in function.params.params if each.name.value not in ("self", "cls") or not is_method]
        names = {each.name.value: each for each in (*params, *function.params.kwonly_params)}
        for index, arg in enumerate(node.args):
            if arg.star:
                return
            param = names.get(arg.keyword.value) if arg.keyword else params[index] if index < len(params) else None
            if param is not None and param.annotation is None:
                self.edges.append(Edge(param.name, arg.value))


def _functions(module: cst.Module) -> dict[str, cst.FunctionDef]:
    """Return the functions and methods whose names are unique in the module."""
    found: dict[str, cst.FunctionDef | None] = {}
    for node in m.findall(module, m.FunctionDef()):
        assert isinstance(node, cst.FunctionDef)
        found[node.name.value] = None if node.name.value in found else node
    return {name: node for name, node in found.items() if node is not None}


def _stored(target: cst.BaseExpression) -> cst.BaseExpression:
    return target.value if isinstance(target, cst.Subscript) else target


def _last(node: cst.CSTNode) -> str:
    return node.attr.value if isinstance(node, cst.Attribute) else dotted(node).rpartition(".")[2]


def _is_none(node: cst.BaseExpression | None) -> bool:
    """Whether a value has no kind of its own: None, an empty collection."""
    if isinstance(node, (cst.Dict, cst.List)):
        return not node.elements
    return node is None or (isinstance(node, cst.Name) and node.value == "None")


def _one(kinds: set[str] | None) -> str | None:
    return next(iter(kinds)) if kinds is not None and len(kinds) == 1 else None


def _first(kinds: Iterable[str | None]) -> str | None:
    return next((each for each in kinds if each is not None), None)


def _many(kind: str | None) -> str | None:
    return None if kind is None or kind == UNKNOWN else kind + MANY


def _single(kind: str | None) -> str | None:
    return kind.removesuffix(MANY) if kind is not None and kind.endswith(MANY) else None
