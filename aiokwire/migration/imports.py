"""Rewrites import statements, by what the rewritten body needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import libcst as cst

from aiokwire.migration import rules
from aiokwire.migration.findings import Finding
from aiokwire.migration.names import Import, Names, home_of, new_names
from aiokwire.migration.nodes import COMMA, arranged, code, name_of
from aiokwire.migration.program import OLD, Binding, Program, Reference, alias_of, dotted, is_old, module_of

_WIDTH = 88  # of one line of imports


class ImportRewriter(cst.CSTTransformer):
    """Replaces imports of aiokafka, keeps those that are still used, and adds new ones."""

    def __init__(self, program: Program, names: Names) -> None:
        super().__init__()
        self._program = program
        self._names = names
        self.findings: list[Finding] = []
        self._additions = self._further_imports()
        self._written: set[int] = set()  # the ids of new statements

    def _further_imports(self) -> dict[str, list[Import]]:
        """Return imports that no existing statement has, by module."""
        present = {each for needed in self._names.needed.values() for each in needed}
        found: dict[str, list[Import]] = {}
        for each in self._names.added:
            if each not in present:
                found.setdefault(each.home, []).append(each)
        return found

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.FlattenSentinel[cst.BaseStatement] | cst.RemovalSentinel:
        if len(updated_node.body) != 1:
            return updated_node
        statement = updated_node.body[0]
        match statement:
            case cst.ImportFrom() if is_old(module_of(statement)):
                return self._placed(updated_node, self._from(statement))
            case cst.Import() if any(is_old(dotted(each.name)) for each in statement.names):
                return self._placed(updated_node, self._modules(statement))
        return updated_node

    def _placed(
        self, line: cst.SimpleStatementLine, statements: Sequence[cst.BaseSmallStatement]
    ) -> cst.SimpleStatementLine | cst.FlattenSentinel[cst.BaseStatement] | cst.RemovalSentinel:
        """Put statements in the place of one; its comments stay with the first."""
        if not statements:
            return cst.RemoveFromParent()
        first = line.with_changes(body=[statements[0]])
        rest = [cst.SimpleStatementLine([each]) for each in statements[1:]]
        return cst.FlattenSentinel([first, *rest]) if rest else first

    # --- from module import names -------------------------------------------------------------------------------------

    def _from(self, node: cst.ImportFrom) -> list[cst.BaseSmallStatement]:
        if isinstance(node.names, cst.ImportStar):
            return [node]
        kept: list[cst.ImportAlias] = []
        new: dict[str, list[cst.ImportAlias]] = {}
        modules: list[cst.BaseSmallStatement] = []
        for alias in node.names:
            binding = Binding(module_of(node), dotted(alias.name), alias_of(alias))
            if _is_module(binding):
                modules += self._submodule(binding, alias, kept)
                continue
            wanted = self._wanted(binding)
            if binding in self._names.kept or (not wanted and binding not in self._names.used):
                kept.append(alias)
            for each in wanted:
                self._add(new, alias, each)
        for home, further in self._additions.items():
            if home in new:
                for each in further:
                    self._add(new, None, each)
        self._additions = {home: further for home, further in self._additions.items() if home not in new}
        return [*self._statements(node, kept, new), *modules]

    def _wanted(self, binding: Binding) -> Iterable[Import]:
        """Return what replaces an imported name; a name without uses is replaced, too."""
        needed = self._names.needed.get(binding)
        if needed or binding in self._names.used or binding in self._names.kept:
            return needed or {}
        reference = Reference(binding.module, binding.name, (binding,))
        return [Import(home_of(each, reference), each, binding.alias) for each in new_names(binding.name)]

    def _add(self, new: dict[str, list[cst.ImportAlias]], old: cst.ImportAlias | None, wanted: Import) -> None:
        aliases = new.setdefault(wanted.home, [])
        if any(dotted(each.name) == wanted.name and alias_of(each) == wanted.alias for each in aliases):
            return
        asname = cst.AsName(cst.Name(wanted.alias)) if wanted.alias else None
        base = old if old is not None else cst.ImportAlias(cst.Name(wanted.name))
        if old is not None and old.asname is not None and asname is not None:
            asname = old.asname
        aliases.append(base.with_changes(name=cst.Name(wanted.name), asname=asname))

    def _statements(
        self, node: cst.ImportFrom, kept: list[cst.ImportAlias], new: Mapping[str, list[cst.ImportAlias]]
    ) -> list[cst.BaseSmallStatement]:
        assert not isinstance(node.names, cst.ImportStar)
        opening = None if node.lpar is None else node.lpar.whitespace_after
        found: list[cst.BaseSmallStatement] = []
        for home, aliases in new.items():
            changed = _wrapped(node.with_changes(module=name_of(home), names=arranged(node.names, aliases, opening)))
            self._written.add(id(changed))
            found.append(changed)
        if kept:
            found.append(node.with_changes(names=arranged(node.names, kept, opening)))
        return found

    def _submodule(
        self, binding: Binding, alias: cst.ImportAlias, kept: list[cst.ImportAlias]
    ) -> list[cst.BaseSmallStatement]:
        """`from aiokafka import errors` becomes an import of the module that has the new names."""
        if binding in self._names.kept or binding not in self._names.used:
            kept.append(alias)
        if binding not in self._names.used:
            return []
        home, _, name = rules.MODULES.get(binding.target, rules.ROOT).rpartition(".")
        asname = cst.AsName(cst.Name(binding.local)) if name != binding.local else None
        imported = cst.ImportAlias(cst.Name(name), asname)
        return [cst.ImportFrom(name_of(home), [imported])] if home else [cst.Import([imported])]

    # --- import module ------------------------------------------------------------------------------------------------

    def _modules(self, node: cst.Import) -> list[cst.BaseSmallStatement]:
        aliases: list[cst.ImportAlias] = []
        for alias in node.names:
            binding = Binding(dotted(alias.name), "", alias_of(alias))
            if not is_old(binding.module):
                aliases.append(alias)
                continue
            is_kept = binding in self._names.kept
            if binding in self._names.used or not is_kept:
                aliases.append(self._module(binding, alias))
            if is_kept:
                aliases.append(alias)
        changed = node.with_changes(names=arranged(node.names, aliases))
        self._written.add(id(changed))
        return [changed]

    def _module(self, binding: Binding, alias: cst.ImportAlias) -> cst.ImportAlias:
        module = rules.MODULES.get(binding.module, rules.ROOT)
        changed = alias.with_changes(name=name_of(module))
        if not binding.alias and self._names.local_module(binding) == OLD:
            return changed.with_changes(name=name_of(rules.ROOT), asname=cst.AsName(cst.Name(OLD)))
        return changed

    # --- neighbours ---------------------------------------------------------------------------------------------------

    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> cst.BaseSuite:
        return updated_node.with_changes(body=self._merged(updated_node.body))

    def _merged(self, body: Sequence[cst.BaseStatement]) -> list[cst.BaseStatement]:
        """Merge neighbours of one module, unless comments or blank lines are between them."""
        found: list[cst.BaseStatement] = []
        for each in self._without_repeated(body):
            before, after = (self._new_import(found[-1]) if found else None), self._new_import(each)
            if before is not None and after is not None and not _has_comments(each) and _same_module(before, after):
                joined = _joined(before, after)
                self._written.add(id(joined))
                found[-1] = found[-1].with_changes(body=[joined])
            else:
                found.append(each)
        return found

    def _without_repeated(self, body: Sequence[cst.BaseStatement]) -> Iterable[cst.BaseStatement]:
        """Leave out new imports of a module that is already imported in the same block."""
        seen: set[str] = set()
        for each in body:
            small = each.body[0] if isinstance(each, cst.SimpleStatementLine) else None
            text = code(small) if isinstance(small, cst.Import) else ""
            if text and text in seen and id(small) in self._written:
                continue
            seen.add(text)
            yield each

    def _new_import(self, statement: cst.BaseStatement) -> cst.ImportFrom | None:
        small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
        return small if isinstance(small, cst.ImportFrom) and id(small) in self._written else None

    # --- further imports ----------------------------------------------------------------------------------------------

    def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> cst.Module:
        """Add imports that found no place beside others; merge those of the same module."""
        updated_node = updated_node.with_changes(body=self._merged(updated_node.body))
        missing = [name for name in sorted(self._names.modules) if not _imports_module(original_node, name)]
        lines: list[cst.BaseSmallStatement] = [cst.Import([cst.ImportAlias(cst.Name(name))]) for name in missing]
        module = _inserted(updated_node, lines, at_the_top=True)
        further: list[cst.BaseSmallStatement] = [
            cst.ImportFrom(name_of(home), [cst.ImportAlias(cst.Name(each.name), _asname(each)) for each in names])
            for home, names in self._additions.items()
        ]
        return _inserted(module, further, at_the_top=False)


def _has_comments(statement: cst.BaseStatement) -> bool:
    assert isinstance(statement, cst.SimpleStatementLine)
    return bool(statement.leading_lines) or statement.trailing_whitespace.comment is not None


def _same_module(first: cst.ImportFrom, second: cst.ImportFrom) -> bool:
    return module_of(first) == module_of(second)


def _joined(first: cst.ImportFrom, second: cst.ImportFrom) -> cst.ImportFrom:
    assert not isinstance(first.names, cst.ImportStar)
    assert not isinstance(second.names, cst.ImportStar)
    names = {(dotted(each.name), alias_of(each)): each for each in (*second.names, *first.names)}
    order = dict.fromkeys((dotted(each.name), alias_of(each)) for each in (*first.names, *second.names))
    opening = None if first.lpar is None else first.lpar.whitespace_after
    plain = [each if each in first.names else each.with_changes(comma=COMMA) for each in map(names.__getitem__, order)]
    return _wrapped(first.with_changes(names=arranged(first.names, plain, opening)))


def _asname(wanted: Import) -> cst.AsName | None:
    return cst.AsName(cst.Name(wanted.alias)) if wanted.alias else None


def _is_module(binding: Binding) -> bool:
    """Whether an imported name is a module of aiokafka."""
    return binding.name.islower() and binding.name not in rules.FUNCTIONS


def _wrapped(node: cst.ImportFrom) -> cst.ImportFrom:
    """Put the names into parentheses, one per line, if the statement became too long."""
    assert not isinstance(node.names, cst.ImportStar)
    text = cst.Module([]).code_for_node(node)
    if node.lpar is not None or len(text) <= _WIDTH:
        return node
    indented = cst.ParenthesizedWhitespace(indent=True, last_line=cst.SimpleWhitespace("    "))
    names = [each.with_changes(comma=cst.Comma(whitespace_after=indented)) for each in node.names]
    names[-1] = names[-1].with_changes(comma=cst.Comma(whitespace_after=cst.ParenthesizedWhitespace(indent=True)))
    return node.with_changes(names=names, lpar=cst.LeftParen(whitespace_after=indented), rpar=cst.RightParen())


def _imports_module(module: cst.Module, name: str) -> bool:
    return any(
        isinstance(small, cst.Import) and any(dotted(each.name) == name and not alias_of(each) for each in small.names)
        for line in module.body
        if isinstance(line, cst.SimpleStatementLine)
        for small in line.body
    )


def _inserted(module: cst.Module, statements: Sequence[cst.BaseSmallStatement], *, at_the_top: bool) -> cst.Module:
    """Insert imports before the first import of the module, or behind the last one."""
    if not statements:
        return module
    places = [index for index, each in enumerate(module.body) if _is_import(each)]
    body = list(module.body)
    new: list[cst.BaseStatement] = [cst.SimpleStatementLine([each]) for each in statements]
    start = 1 if module.get_docstring() is not None else 0
    at = start if not places else places[0] if at_the_top else places[-1] + 1
    if at_the_top and places:
        first = body[at]
        assert isinstance(first, cst.SimpleStatementLine)
        new[0] = cst.SimpleStatementLine([statements[0]], leading_lines=first.leading_lines)
        body[at] = first.with_changes(leading_lines=[])
    return module.with_changes(body=[*body[:at], *new, *body[at:]])


def _is_import(statement: cst.CSTNode) -> bool:
    """Whether a statement is an import, but not one `from __future__`."""
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    small = statement.body[0]
    return isinstance(small, cst.Import) or (isinstance(small, cst.ImportFrom) and module_of(small) != "__future__")
