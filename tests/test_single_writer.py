"""Every mutable state that components share has one owner: docs/architecture.md's table is true.

A row names a class and its attributes. Only methods of that class assign them, and where the row
names the attribute through which the class is reached, only the modules in the row call methods
that do. In the packages of the table, any other assignment to another object's attribute is a
fault: add a method to the owner, or a row to the table.
Modules of Cython count, too. What a function assigns to an object that it has just created by
`__new__` is its construction.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "aiokwire"
HEADING = "## States and their owners"
# Attributes of objects of other projects: exceptions, cancel scopes, types and futures.
FOREIGN = {"__cause__", "deadline", "am_send", "tp_iternext", "tp_dealloc", "_asyncio_future_blocking"}
# Modules that build requests and responses may assign the fields of a message that is not sent yet.
BUILDERS = re.compile(r"(?:^|/)(?:offset_requests\.py|requests\.py|throttling\.py|handlers/.*)$")


class Row(NamedTuple):
    """One row of the table."""

    path: str  # of the module, below the package
    owner: str  # its class
    attributes: frozenset[str]
    reach: str  # the attribute through which others reach it; empty: its callers are not checked
    callers: frozenset[str]  # modules of the same folder

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def package(self) -> str:
        return self.path.partition("/")[0]


def private_attributes(tree: ast.Module) -> set[str]:
    """The attributes of the private classes of a module: only that module knows the objects."""
    return {
        target.attr
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name.startswith("_")
        for target in targets(node)
        if is_own(target)
    }


class Write(NamedTuple):
    """An assignment to an attribute of another object than `self`."""

    path: str
    line: int
    owner: str  # the class around it
    attribute: str


def rows() -> list[Row]:
    """Read the table."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    section = text[text.index(HEADING) + len(HEADING) :].split("\n## ")[0]
    found = []
    for line in section.splitlines():
        cells = [re.findall(r"`([^`]+)`", cell) for cell in line.strip("|").split("|")]
        if len(cells) == 4 and cells[0]:
            path, owner = cells[0][0].split("::")
            reach = cells[2][0].removeprefix(".") if cells[2] else ""
            found.append(Row(path, owner, frozenset(cells[1]), reach, frozenset(cells[3])))
    return found


def message_fields() -> set[str]:
    """The fields of all messages of the protocol."""
    found: set[str] = set()
    for path in (PACKAGE / "protocol" / "messages").glob("*.py"):
        for slots in re.findall(r"^    __slots__ = \((.*?)\)$", path.read_text(), re.DOTALL | re.MULTILINE):
            found |= set(re.findall(r'"(\w+)"', slots))
    return found


ROWS = rows()
FIELDS = message_fields()
PACKAGES = sorted({row.package for row in ROWS})
# What Cython adds to Python's grammar, and what to read instead.
CYTHON = [
    (r"^cdef extern.*\n(?:(?: .*)?\n)+", ""),
    (r"^(?:from .* )?cimport (?:\([^)]*\)|.*)$", ""),
    (r"^cdef enum:$", "if True:"),
    (r"^cdef class", "class"),
    (
        r"^( *)(?:def|cdef|cpdef)\b[^\n(=]*?(\w+)\([^:]*?\)(?: except\??(?: -?\w+)?| noexcept)?:$",
        r"\1def \2(self, *_):",
    ),
    (r"^( *)cdef [^=\n]*?(\w+) = ", r"\1\2 = "),
    (r"^( *)(?:cdef|cpdef) .*$", r"\1pass"),
    (r"<(?:const )?[A-Za-z_]\w* ?\**>", ""),  # casts
    (r"(?<=[(, ])&(?=\w)", ""),  # addresses
    (r"\b(0x[0-9A-Fa-f]+|\d+)U\b", r"\1"),
]


def tree_of(path: Path) -> ast.Module:
    """Parse a module of Python or Cython; of the latter, without signatures and declarations."""
    text = path.read_text()
    if path.suffix == ".pyx":
        for pattern, instead in CYTHON:
            text = re.sub(pattern, instead, text, flags=re.MULTILINE)
    return ast.parse(text)


def trees(folder: str) -> Iterator[tuple[str, ast.Module]]:
    for path in sorted([*(PACKAGE / folder).rglob("*.py"), *(PACKAGE / folder).rglob("*.pyx")]):
        yield path.relative_to(PACKAGE).as_posix(), tree_of(path)


def targets(node: ast.AST) -> Iterator[ast.Attribute]:
    """The attributes that a statement assigns or deletes."""
    for child in ast.walk(node):
        if isinstance(child, ast.Attribute) and isinstance(child.ctx, (ast.Store, ast.Del)):
            yield child


def is_own(target: ast.Attribute) -> bool:
    return isinstance(target.value, ast.Name) and target.value.id == "self"


def created(function: ast.FunctionDef) -> set[str]:
    """The variables of a function that hold an object which it has created by `__new__`."""
    return {
        target.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        if isinstance(node.value.func, ast.Attribute) and node.value.func.attr == "__new__"
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def writes(path: str, node: ast.AST, owner: str = "", new: frozenset[str] | set[str] = frozenset()) -> Iterator[Write]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from writes(path, child, child.name)
        elif isinstance(child, ast.FunctionDef):
            yield from writes(path, child, owner, created(child))
        elif isinstance(child, ast.Attribute) and isinstance(child.ctx, (ast.Store, ast.Del)):
            is_new = isinstance(child.value, ast.Name) and child.value.id in new
            if not is_own(child) and not is_new and child.attr not in FOREIGN:
                yield Write(path, child.lineno, owner, child.attr)
        else:
            yield from writes(path, child, owner, new)


def class_of(row: Row) -> ast.ClassDef:
    tree = tree_of(PACKAGE / row.path)
    return next(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == row.owner)


def mutators(row: Row) -> set[str]:
    """The owner's methods that assign an attribute, fire its state machine or call such methods."""
    methods = {
        method.name: method
        for method in class_of(row).body
        if isinstance(method, ast.FunctionDef) and method.name != "__init__"
    }
    found = {name for name, method in methods.items() if is_mutator(method, row.attributes)}
    while more := {name for name, method in methods.items() if own_calls(method) & found} - found:
        found |= more
    return found


def is_mutator(method: ast.FunctionDef, attributes: frozenset[str]) -> bool:
    return "fire" in own_calls(method) or any(target.attr in attributes for target in targets(method))


def own_calls(method: ast.FunctionDef) -> set[str]:
    """The methods of `self`, and `fire` of its state machine, that a method calls."""
    calls = [node.func for node in ast.walk(method) if isinstance(node, ast.Call)]
    named = [call for call in calls if isinstance(call, ast.Attribute)]
    return {
        call.attr
        for call in named
        if (isinstance(call.value, ast.Name) and call.value.id == "self") or call.attr == "fire"
    }


def callers(row: Row) -> set[str]:
    """The modules that call such a method by the row's attribute, or a local variable named so."""
    methods = mutators(row)
    found = set()
    for path, tree in trees(row.folder):
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in methods):
                continue
            base = node.func.value
            name = base.attr if isinstance(base, ast.Attribute) else base.id if isinstance(base, ast.Name) else ""
            if name == row.reach:
                found.add(Path(path).stem)
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_an_attribute_of_another_object_is_assigned_by_its_owner_alone(package: str) -> None:
    faults = []
    for path, tree in trees(package):
        private = private_attributes(tree)
        for write in writes(path, tree):
            owners = [row for row in ROWS if row.package == package and write.attribute in row.attributes]
            if not owners and write.attribute in private:
                continue
            if BUILDERS.search(path) and write.attribute in FIELDS:
                continue
            if (write.path, write.owner) not in [(row.path, row.owner) for row in owners]:
                names = " or ".join(row.owner for row in owners)
                who = f"{names} owns it" if owners else "no row of the table names it"
                faults.append(f"{path}:{write.line}: {write.owner} assigns {write.attribute}: {who}")
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("row", [row for row in ROWS if row.reach], ids=lambda row: row.owner)
def test_the_state_of_an_owner_is_changed_by_the_components_of_the_table(row: Row) -> None:
    own = {target.attr for target in targets(class_of(row)) if is_own(target)}
    assert own == row.attributes, "the row names all attributes"
    assert callers(row) == row.callers


def test_only_the_owner_of_a_state_machine_fires_it() -> None:
    for package in PACKAGES:
        for path, tree in trees(package):
            for node in ast.walk(tree):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "fire":
                    machine = node.func.value
                    assert isinstance(machine, ast.Attribute), f"{path}:{node.lineno}"
                    assert is_own(machine), f"{path}:{node.lineno}"


def test_the_table_covers_the_consumer() -> None:
    assert {"consumer", "group", "producer"} <= set(PACKAGES)
    assert {"Position", "LogEnds", "FetchAttempt", "ReadSource", "PartitionState"} <= {row.owner for row in ROWS}


def test_an_assignment_from_outside_is_a_fault() -> None:
    tree = ast.parse(
        "class Fetcher:\n    def run(self, state):\n        state.cursor.offset, self.x = 5, 6\n        del state.a\n"
    )
    assert list(writes("f.py", tree)) == [Write("f.py", 3, "Fetcher", "offset"), Write("f.py", 4, "Fetcher", "a")]


def test_an_assignment_in_a_module_of_cython_counts(tmp_path: Path) -> None:
    path = tmp_path / "_queue.pyx"
    path.write_text(
        "from libc.stdint cimport int32_t\n"
        "cdef class Queue:\n"
        "    cdef int32_t size\n"
        "    cdef int put(self, Batch batch, int32_t index=0) except -1:\n"
        "        cdef Batch fresh = Batch.__new__(Batch)\n"
        "        fresh.state = 0\n"
        "        (<Batch>batch).state = <int>index\n"
        "        return 0\n"
    )
    assert [write[2:] for write in writes("_queue.pyx", tree_of(path))] == [("Queue", "state")]
