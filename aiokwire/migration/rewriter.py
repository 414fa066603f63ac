"""Rewrites the body of a module: everything except its import statements.

The decisions are made on the original nodes, whose scopes and positions are known; the new nodes
are built from the children that were already rewritten.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import libcst as cst
from libcst import matchers as m

from aiokwire.migration import calls, constructors, rules
from aiokwire.migration.calls import Site
from aiokwire.migration.findings import Finding
from aiokwire.migration.listeners import Listeners
from aiokwire.migration.names import Names, distinct, new_names
from aiokwire.migration.nodes import code, parsed, text_of
from aiokwire.migration.program import OLD, Program, Reference, is_old, module_of
from aiokwire.migration.tracking import Kinds

_STATEMENTS: Final = (cst.SimpleStatementLine, cst.BaseCompoundStatement)


class Rewriter(cst.CSTTransformer):
    """Rewrites references, constructors, calls, listeners and except clauses."""

    def __init__(self, program: Program, *, keep_defaults: bool = False, todo: bool = False) -> None:
        super().__init__()
        self.program = program
        self.keep_defaults = keep_defaults
        self.names: Names = Names(program)
        self.kinds: Kinds = Kinds(program)
        self.listeners: Listeners = Listeners(self)
        self.findings: list[Finding] = []
        self._todo = todo
        self._comments: dict[cst.CSTNode, list[str]] = {}
        self._consumed: set[cst.CSTNode] = set()  # references that their parent replaces
        self._blocks: dict[cst.With, str] = {}  # the transactions that need a name

    # --- reports ------------------------------------------------------------------------------------------------------

    def report(self, node: cst.CSTNode, name: str, advice: str) -> None:
        """Report something to do at the line of a node."""
        finding = Finding(self.program.line(node), name, advice)
        if finding in self.findings:
            return
        self.findings.append(finding)
        statement = node if isinstance(node, _STATEMENTS) else self._statement(node)
        if statement is not None:
            self._comments.setdefault(statement, []).append(f"{name}: {advice}")

    def _statement(self, node: cst.CSTNode) -> cst.CSTNode | None:
        return next((each for each in self.program.ancestors(node) if isinstance(each, _STATEMENTS)), None)

    def on_leave(
        self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT
    ) -> cst.CSTNodeT | cst.RemovalSentinel | cst.FlattenSentinel[cst.CSTNodeT]:
        """Add the comments of a statement once it is rewritten."""
        result = super().on_leave(original_node, updated_node)
        comments = self._comments.get(original_node) if self._todo else None
        if not comments or not isinstance(result, _STATEMENTS):
            return result
        present = {each.comment.value for each in result.leading_lines if each.comment is not None}
        lines = [cst.EmptyLine(comment=cst.Comment(f"# TODO(aiokwire): {each}")) for each in comments]
        new = [each for each in lines if each.comment is not None and each.comment.value not in present]
        return result.with_changes(leading_lines=[*result.leading_lines, *new])

    def visit_ImportFrom(self, node: cst.ImportFrom) -> None:
        if isinstance(node.names, cst.ImportStar) and is_old(module_of(node)):
            self.report(node, "*", "import the names one by one, then migrate again")

    # --- references ---------------------------------------------------------------------------------------------------

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        return self._replaced(original_node, updated_node)

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        if self.program.reference(original_node) is not None:
            return self._replaced(original_node, updated_node)
        self._check_attribute(original_node)
        return self.listeners.renamed_attribute(original_node, updated_node)

    def _replaced(self, original: cst.BaseExpression, updated: cst.BaseExpression) -> cst.BaseExpression:
        reference = self.program.reference(original)
        if reference is None or original in self._consumed:
            return updated
        if not reference.name:
            return self._module(original, updated, reference)
        found = self.names.replacements(reference)
        if not found:
            self.names.keep(reference)
            self.report(original, reference.name, rules.GONE.get(reference.name, rules.NO_COUNTERPART))
            return updated
        return found[0] if len(found) == 1 or not self._takes_tuple(original) else _tuple(found)

    def _module(
        self, original: cst.BaseExpression, updated: cst.BaseExpression, reference: Reference
    ) -> cst.BaseExpression:
        """A module that is not followed by a name of it."""
        if isinstance(self.program.parent(original), cst.Attribute):
            return updated
        return self.names.module(reference) or updated

    def _takes_tuple(self, node: cst.CSTNode) -> bool:
        """Whether a tuple may stand for a class: `isinstance(error, KafkaTimeoutError)`."""
        call = self.program.parent(self.program.parent(node))
        return isinstance(call, cst.Call) and code(call.func).rpartition(".")[2] in (
            "isinstance", "issubclass", "raises", "suppress", "retry_if_exception_type",
        )  # fmt: skip

    def _check_attribute(self, node: cst.Attribute) -> None:
        """Report attributes of clients and records that have no counterpart."""
        name = node.attr.value
        kind = self.kinds.of(node.value)
        parent = self.program.parent(node)
        if kind is None:
            is_called = isinstance(parent, cst.Call) and parent.func is node
            if name in rules.DISTINCTIVE and is_called and not self._is_self(node):
                self.report(node, name, "annotate the object as a client of aiokafka, then migrate again")
            elif name.startswith("serialized_") and name in rules.ADVICE[rules.RECORD]:
                self.report(node, name, rules.ADVICE[rules.RECORD][name])
            return
        if (kind, name) in calls.CALLS or (kind, name) in calls.AWAITED:
            return
        if name in rules.ADVICE.get(kind, {}):
            self.report(node, name, rules.ADVICE[kind][name])
        elif name.startswith("_") and kind in rules.CLIENTS.values():
            self.report(node, name, "is private in aiokafka, and does not exist here")

    def _is_self(self, node: cst.Attribute) -> bool:
        return isinstance(node.value, cst.Name) and node.value.value in ("self", "cls")

    def leave_Annotation(self, original_node: cst.Annotation, updated_node: cst.Annotation) -> cst.Annotation:
        """Rename within annotations that are strings."""
        text = updated_node.annotation
        if not isinstance(text, cst.SimpleString):
            return updated_node
        new = re.sub(r"[A-Za-z_][\w.]*", lambda found: self._annotated(found[0]), text.value)
        return updated_node.with_changes(annotation=text.with_changes(value=new))

    def _annotated(self, word: str) -> str:
        for binding in self.program.bindings:
            rest = word.removeprefix(binding.local)
            if rest == word or (rest and not rest.startswith(".")):
                continue
            *modules, name = f"{binding.target}{rest}".split(".")
            if new_names(name):
                return code(self.names.replacements(Reference(".".join(modules), name, (binding,)))[0])
        return word

    def leave_SimpleString(self, original_node: cst.SimpleString, updated_node: cst.SimpleString) -> cst.SimpleString:
        """Report names of aiokafka in strings, as `mock.patch` has them; rename its logger."""
        text = text_of(original_node)
        if text is None or not (text == OLD or re.match(r"aiokafka\.[\w.]+$", text)):
            return updated_node
        parent = self.program.parent(self.program.parent(original_node))
        if isinstance(parent, cst.Call) and code(parent.func).endswith("getLogger"):
            return updated_node.with_changes(value=updated_node.value.replace(OLD, rules.ROOT))
        self.report(original_node, text, "a string that names aiokafka: change it if it is a module or a logger")
        return updated_node

    # --- calls --------------------------------------------------------------------------------------------------------

    def visit_Call(self, node: cst.Call) -> None:
        """Mark the names that this call's rewriting removes, before they are reported."""
        reference = self.program.reference(node.func)
        name = "" if reference is None else reference.name
        if name in rules.CLIENTS:
            for arg in node.args:
                self._mark_option(arg)
        is_plain = name in ("NewPartitions", "RecordsToDelete") and constructors.plain_value(node)
        if is_plain or (name == "create_ssl_context" and constructors.has_only_authorities(node)):
            self._consume(node.func)

    def _mark_option(self, arg: cst.Arg) -> None:
        option = "" if arg.keyword is None else arg.keyword.value
        if option == "partition_assignment_strategy" and constructors.assignor_names(self, arg.value) is not None:
            assert isinstance(arg.value, (cst.List, cst.Tuple))
            for each in arg.value.elements:
                self._consume(each.value)
        elif option == "partitioner" and constructors.is_default_partitioner(self, arg.value):
            assert isinstance(arg.value, cst.Call)
            self._consume(arg.value.func)
        elif (
            option == "ssl_context" and isinstance(arg.value, cst.Call) and constructors.is_tls_helper(self, arg.value)
        ):
            self._consume(arg.value.func)
        elif option in rules.DROPPED_OPTIONS:
            self._consumed.update(m.findall(arg.value, m.Name() | m.Attribute()))

    def _consume(self, node: cst.CSTNode) -> None:
        reference = self.program.reference(node)
        self._consumed.add(node)
        if reference is not None:
            self.names.consume(reference)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        reference = self.program.reference(original_node.func)
        if reference is not None:
            return self._constructed(reference.name, original_node, updated_node)
        if calls.is_length_of_partitions(self, original_node):
            return updated_node.args[0].value
        site = self.site(original_node, updated_node)
        if site is None:
            return updated_node
        key = (site.kind, site.method)
        if key in calls.AWAITED and not site.is_awaited:
            site.report("await the call in the place where it is made, then migrate again")
            return updated_node
        rewrite = calls.CALLS.get(key)
        return updated_node if rewrite is None else rewrite(site) or updated_node

    def leave_Await(self, original_node: cst.Await, updated_node: cst.Await) -> cst.BaseExpression:
        original, call = original_node.expression, updated_node.expression
        if not isinstance(original, cst.Call) or not isinstance(call, cst.Call):
            return updated_node
        site = self.site(original, call)
        rewrite = None if site is None else calls.AWAITED.get((site.kind, site.method))
        if site is None or rewrite is None:
            return updated_node
        result = rewrite(site)
        if result is None:
            return updated_node
        if isinstance(result, cst.Await):
            return updated_node.with_changes(expression=result.expression)
        return result

    def site(self, original: cst.Call, call: cst.Call) -> Site | None:
        if not isinstance(original.func, cst.Attribute) or not isinstance(call.func, cst.Attribute):
            return None
        kind = self.kinds.of(original.func.value)
        return None if kind is None else Site(self, original, call, kind)

    def _constructed(self, name: str, original: cst.Call, call: cst.Call) -> cst.BaseExpression:
        if name in rules.CLIENTS:
            return constructors.client(self, rules.CLIENTS[name], original, call)
        if name == "NewTopic":
            return constructors.new_topic(self, original, call)
        if original.func in self._consumed:
            if name == "create_ssl_context" and constructors.has_only_authorities(original):
                return constructors.tls_context(self, call)
            if name in ("NewPartitions", "RecordsToDelete"):
                return call.args[0].value
        return call

    # --- transactions -------------------------------------------------------------------------------------------------

    def visit_With(self, node: cst.With) -> None:
        """Give a transaction a name if its block commits offsets."""
        if any(self._is_transaction(each) for each in node.items) and m.findall(
            node.body, m.Attribute(attr=m.Name("send_offsets_to_transaction"))
        ):
            item = next(each for each in node.items if self._is_transaction(each))
            is_named = item.asname is not None and isinstance(item.asname.name, cst.Name)
            free = next(
                each for each in ("transaction", "tx", "kafka_transaction") if each not in self.program.identifiers
            )
            self._blocks[node] = code(item.asname.name) if is_named and item.asname else free

    def _is_transaction(self, item: cst.WithItem) -> bool:
        call = item.item
        if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
            return False
        return call.func.attr.value == "transaction" and self.kinds.of(call.func.value) == rules.PRODUCER

    def leave_With(self, original_node: cst.With, updated_node: cst.With) -> cst.With:
        name = self._blocks.get(original_node)
        if name is None:
            return updated_node
        items = [
            each.with_changes(asname=cst.AsName(cst.Name(name)))
            if self._is_transaction(old) and each.asname is None
            else each
            for old, each in zip(original_node.items, updated_node.items, strict=True)
        ]
        return updated_node.with_changes(items=items)

    def transaction_around(self, node: cst.CSTNode) -> str | None:
        """Return the name of the transaction in whose block a node is."""
        found = (self._blocks.get(each) for each in self.program.ancestors(node) if isinstance(each, cst.With))
        return next((each for each in found if each is not None), None)

    # --- errors -------------------------------------------------------------------------------------------------------

    def visit_ExceptHandler(self, node: cst.ExceptHandler) -> None:
        for each in _caught(node.type):
            reference = self.program.reference(each)
            if reference is not None and reference.name in rules.ERRORS:
                self._consumed.add(each)

    def leave_ExceptHandler(
        self, original_node: cst.ExceptHandler, updated_node: cst.ExceptHandler
    ) -> cst.ExceptHandler:
        """Replace the errors of an except clause, each by one or several."""
        if not any(each in self._consumed for each in _caught(original_node.type)):
            return updated_node
        found: list[cst.BaseExpression] = []
        for old, new in zip(_caught(original_node.type), _caught(updated_node.type), strict=True):
            reference = self.program.reference(old)
            if reference is None or old not in self._consumed:
                found.append(new)
            else:
                found += self.names.replacements(reference)
                self._report_coarse(original_node, reference)
        classes = distinct(found)
        return updated_node.with_changes(type=classes[0] if len(classes) == 1 else _tuple(classes))

    def _report_coarse(self, node: cst.ExceptHandler, reference: Reference) -> None:
        new = rules.ERRORS[reference.name][0]
        if new in rules.COARSE:
            self.report(node, reference.name, f"{new} stands for several codes: compare its `code` with ErrorCode")

    # --- listeners ----------------------------------------------------------------------------------------------------

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        return self.listeners.renamed_method(original_node, updated_node)

    def leave_ClassDef(self, original_node: cst.ClassDef, updated_node: cst.ClassDef) -> cst.ClassDef:
        self._check_bases(original_node)
        return updated_node

    def _check_bases(self, node: cst.ClassDef) -> None:
        for base in node.bases:
            reference = self.program.reference(base.value)
            if reference is not None and reference.name in rules.CLIENTS:
                self.report(node, reference.name, "a subclass: check its methods and calls of super()")


def _caught(node: cst.BaseExpression | None) -> Sequence[cst.BaseExpression]:
    """Return the classes of an except clause."""
    if node is None:
        return ()
    return [each.value for each in node.elements] if isinstance(node, cst.Tuple) else [node]


def _tuple(nodes: Sequence[cst.BaseExpression]) -> cst.BaseExpression:
    return parsed(f"({', '.join(code(each) for each in nodes)})")
