"""A module of the user's program: its syntax tree, and what its names refer to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import libcst as cst
from libcst import metadata as meta

from aiokwire.migration import rules

OLD: Final = "aiokafka"


class Binding(NamedTuple):
    """One name of an import: `from module import name as alias`; without name `import module`."""

    module: str
    name: str
    alias: str

    @property
    def local(self) -> str:
        """The name that the statement binds."""
        return self.alias or self.name or self.module.partition(".")[0]

    @property
    def target(self) -> str:
        """What the local name refers to."""
        if self.name:
            return f"{self.module}.{self.name}"
        return self.module if self.alias else self.module.partition(".")[0]


class Reference(NamedTuple):
    """A use of aiokafka: a module (`name` is ""), or a name in one; `bindings` are its imports."""

    module: str
    name: str
    bindings: tuple[Binding, ...]


class Program:
    """A parsed module with the scopes, parents and positions of its nodes."""

    def __init__(self, source: cst.Module) -> None:
        wrapper = meta.MetadataWrapper(source)
        self.module: cst.Module = wrapper.module
        self._scopes: Mapping[cst.CSTNode, meta.Scope | None] = wrapper.resolve(meta.ScopeProvider)
        self._parents: Mapping[cst.CSTNode, cst.CSTNode] = wrapper.resolve(meta.ParentNodeProvider)
        self._positions: Mapping[cst.CSTNode, meta.CodeRange] = wrapper.resolve(meta.PositionProvider)
        self.bindings: tuple[Binding, ...] = tuple(bindings_of(self.module))
        self.rebound: frozenset[str] = self._rebound()
        self.identifiers: frozenset[str] = _identifiers(self)

    # --- nodes --------------------------------------------------------------------------------------------------------

    def line(self, node: cst.CSTNode) -> int:
        """Return the number of the line where a node begins."""
        return self._positions[node].start.line

    def parent(self, node: cst.CSTNode) -> cst.CSTNode:
        return self._parents[node]

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Yield the nodes around a node, the nearest first."""
        current = self._parents.get(node)
        while current is not None:
            yield current
            current = self._parents.get(current)

    def function(self, node: cst.CSTNode) -> cst.FunctionDef | cst.Lambda | None:
        """Return the function whose body has a node; None at the level of a class or module."""
        child = node
        for each in self.ancestors(node):
            if isinstance(each, cst.FunctionDef) and child is each.body:
                return each
            if isinstance(each, cst.Lambda):
                return each
            child = each
        return None

    def can_await(self, node: cst.CSTNode) -> bool:
        """Whether `await` may be written in the place of a node."""
        function = self.function(node)
        if not isinstance(function, cst.FunctionDef) or function.asynchronous is None:
            return False
        return not any(isinstance(each, cst.GeneratorExp) for each in self.ancestors(node))

    # --- names --------------------------------------------------------------------------------------------------------

    def scope_of(self, node: cst.CSTNode, name: str) -> meta.Scope | None:
        """Return the scope in which a name that a node uses or binds is assigned."""
        scope = self._scopes.get(node)
        if scope is None:
            return None
        return next((each.scope for each in scope[name]), scope)

    def _rebound(self) -> frozenset[str]:
        """Return the names that are bound by an import of aiokafka, and also in another way."""
        found = set()
        scopes = {scope for scope in self._scopes.values() if scope is not None}
        for name in {each.local for each in self.bindings}:
            for scope in scopes:
                kinds = {isinstance(each, meta.ImportAssignment) for each in scope[name]}
                if len(kinds) == 2:
                    found.add(name)
        return frozenset(found)

    def reference(self, node: cst.CSTNode) -> Reference | None:
        """Return what a Name or Attribute refers to, if that is a module or name of aiokafka."""
        chain = _chain(node)
        if chain is None:
            return None
        base, attributes = chain
        bindings = self._bindings(base)
        if not bindings:
            return None
        parts = [*bindings[0].target.split("."), *attributes]
        modules = 0
        while modules < len(parts) and parts[modules].islower() and parts[modules] not in rules.FUNCTIONS:
            modules += 1
        if len(parts) - modules > 1:
            return None  # an attribute of a name: the name itself is a reference
        return Reference(".".join(parts[:modules]), ".".join(parts[modules:]), bindings)

    def _bindings(self, base: cst.Name) -> tuple[Binding, ...]:
        scope = self._scopes.get(base)
        if scope is None or not any(isinstance(each, meta.ImportAssignment) for each in scope[base.value]):
            return ()
        return tuple(each for each in self.bindings if each.local == base.value)


def _chain(node: cst.CSTNode) -> tuple[cst.Name, list[str]] | None:
    """Return the name and the attributes of `name.attribute.attribute`."""
    attributes: list[str] = []
    while isinstance(node, cst.Attribute):
        attributes.insert(0, node.attr.value)
        node = node.value
    return (node, attributes) if isinstance(node, cst.Name) else None


def dotted(node: cst.CSTNode | None) -> str:
    """Return the text of a dotted name; "" for another expression."""
    chain = None if node is None else _chain(node)
    return "" if chain is None else ".".join([chain[0].value, *chain[1]])


def is_old(module: str) -> bool:
    """Whether a module belongs to aiokafka."""
    return module == OLD or module.startswith(f"{OLD}.")


def bindings_of(tree: cst.CSTNode) -> Iterator[Binding]:
    """Yield the names that statements import from aiokafka."""
    collector = _Imports()
    tree.visit(collector)
    yield from collector.found


class _Imports(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[Binding] = []

    def visit_Import(self, node: cst.Import) -> None:
        for each in node.names:
            if is_old(dotted(each.name)):
                self.found.append(Binding(dotted(each.name), "", alias_of(each)))

    def visit_ImportFrom(self, node: cst.ImportFrom) -> None:
        if is_old(module_of(node)) and not isinstance(node.names, cst.ImportStar):
            self.found += [Binding(module_of(node), dotted(each.name), alias_of(each)) for each in node.names]


def module_of(node: cst.ImportFrom) -> str:
    """Return the module of a from-import; "" for a relative one."""
    return "" if node.relative else dotted(node.module)


def alias_of(node: cst.ImportAlias) -> str:
    """Return the name after `as`; "" without one."""
    return node.asname.name.value if node.asname is not None and isinstance(node.asname.name, cst.Name) else ""


class _Names(cst.CSTVisitor):
    def __init__(self, program: Program) -> None:
        super().__init__()
        self._program = program
        self.found: set[str] = set()

    def visit_ImportAlias(self, node: cst.ImportAlias) -> bool:
        self.found.add(alias_of(node) or dotted(node.name).partition(".")[0])
        return False

    def visit_Import(self, node: cst.Import) -> bool:
        return not any(is_old(dotted(each.name)) for each in node.names)

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        return not is_old(module_of(node))

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        node.value.visit(self)
        return False

    def visit_Arg(self, node: cst.Arg) -> bool:
        node.value.visit(self)
        return False

    def visit_Name(self, node: cst.Name) -> None:
        if self._program.reference(node) is None:
            self.found.add(node.value)


def _identifiers(program: Program) -> frozenset[str]:
    """Return the names that the module uses, except those that it imports from aiokafka."""
    names = _Names(program)
    program.module.visit(names)
    return frozenset(names.found)
