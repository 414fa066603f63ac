"""How names of aiokafka are written afterwards, and what the import statements have to provide."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import libcst as cst

from aiokwire.migration import nodes, rules
from aiokwire.migration.nodes import name_of
from aiokwire.migration.program import OLD, Binding, Program, Reference


class Import(NamedTuple):
    """`from home import name as alias`."""

    home: str
    name: str
    alias: str

    @property
    def local(self) -> str:
        return self.alias or self.name


def new_names(name: str) -> tuple[str, ...]:
    """Return the names that replace one of aiokafka; none if it has no counterpart."""
    if name in rules.NAMES:
        return (rules.NAMES[name],)
    return rules.ERRORS.get(name, ())


class Names:
    """Chooses local names; notes which imports are needed, and which old ones are used."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.needed: dict[Binding, dict[Import, None]] = {}
        self.kept: set[Binding] = set()
        self.used: set[Binding] = set()
        self.added: dict[Import, None] = {}  # of names that the program did not import before
        self.modules: set[str] = set()  # of the standard library

    def keep(self, reference: Reference) -> None:
        """Note that a name stays as it is."""
        self.kept.update(reference.bindings)

    def consume(self, reference: Reference) -> None:
        """Note that a use of a name is removed."""
        self.used.update(reference.bindings)

    def replacements(self, reference: Reference) -> list[cst.BaseExpression]:
        """Return the new spellings of a reference, one for each new name."""
        return [self._spelled(reference, name) for name in new_names(reference.name)]

    def module(self, reference: Reference) -> cst.BaseExpression | None:
        """Return the new spelling of a module that stands alone; None if it has no counterpart."""
        if reference.module not in (OLD, *rules.MODULES):
            return None
        self._use(reference, None)
        return name_of(self._base(reference, reference.module))

    def _spelled(self, reference: Reference, name: str) -> cst.BaseExpression:
        home = home_of(name, reference)
        binding = reference.bindings[0]
        if binding.name and reference.name == binding.name:  # `from module import name`
            chosen = Import(home, name, self._alias(binding, name))
            self._use(reference, chosen)
            return cst.Name(chosen.local)
        self._use(reference, None)
        base = self._base(reference, "aiokafka.admin" if home == rules.ADMIN else OLD)
        return name_of(f"{base}.{name}")

    def _base(self, reference: Reference, module: str) -> str:
        """Return the local spelling of the module that has the new name."""
        binding = reference.bindings[0]
        if binding.target != OLD:  # a submodule: its replacement has the name itself
            return binding.local
        root = self.local_module(binding)
        return root + rules.MODULES.get(module, rules.ROOT).removeprefix(rules.ROOT)

    def local_module(self, binding: Binding) -> str:
        """Return the local name of the module that replaces aiokafka."""
        return binding.alias or (OLD if self._is_bound_elsewhere(binding) else rules.ROOT)

    def _is_bound_elsewhere(self, binding: Binding) -> bool:
        return binding.local in self._program.rebound

    def _alias(self, binding: Binding, name: str) -> str:
        if binding.alias:
            return binding.alias if binding.alias != name else ""
        is_taken = name in self._program.identifiers or binding.local in self._program.rebound
        return binding.local if is_taken and name != binding.local else ""

    def _use(self, reference: Reference, needed: Import | None) -> None:
        for binding in reference.bindings:
            self.used.add(binding)
            wanted = self.needed.setdefault(binding, {})
            if needed is not None:
                wanted[needed] = None

    def add(self, name: str) -> str:
        """Import a further name of aiokwire; return its local name."""
        for binding in self._program.bindings:
            if binding.name and new_names(binding.name) == (name,):
                reference = Reference(binding.module, binding.name, (binding,))
                return nodes.code(self._spelled(reference, name))
        taken = name in self._program.identifiers
        chosen = Import(rules.ROOT, name, f"Kafka{name}" if taken else "")
        self.added[chosen] = None
        return chosen.local

    def import_module(self, name: str) -> None:
        """Import a module of the standard library, unless the program does."""
        self.modules.add(name)


def home_of(name: str, reference: Reference) -> str:
    """Return the module from which a new name is imported."""
    if reference.module.startswith("aiokafka.admin") and name == "Admin":
        return rules.ADMIN
    return rules.HOMES.get(name, rules.ROOT)


def distinct(expressions: Iterable[cst.BaseExpression]) -> list[cst.BaseExpression]:
    """Return expressions without those that have the text of an earlier one."""
    return list({nodes.code(each): each for each in expressions}.values())
