"""The architecture as a test: imports point down and through `__init__`; `__all__` is complete."""

from __future__ import annotations

import ast
import functools
import importlib
import pathlib
import pkgutil
import subprocess
import sys

import pytest

import aiokwire

ROOT = pathlib.Path(aiokwire.__file__).parent

# The packages that each package may import, besides itself and the root modules.
ROOT_MODULES = {
    "_lazy", "_text", "_version", "async_library", "backoff", "clock", "config", "error_codes", "errors", "events",
    "hooks", "log_fields", "loop_timer", "machine", "metrics", "option_advice", "otlp", "parameters", "threads",
    "types", "units", "watchdog",
}  # fmt: skip
MAY_IMPORT = {
    "protocol": set(),
    "records": set(),
    "security": set(),
    "net": {"protocol", "security"},
    "cluster": {"net", "protocol", "records", "security"},
    "broker": {"net", "protocol", "records", "security"},
    "group": {"cluster", "net", "protocol", "security"},
    "producer": {"cluster", "net", "protocol", "records", "security"},
    "consumer": {"cluster", "group", "net", "protocol", "records", "security"},
    "admin": {"cluster", "group", "net", "protocol", "records", "security"},
    "transforming": {"consumer", "producer"},
    "telemetry": {"consumer", "producer", "worker"},
    "web": {"consumer", "producer"},
    "outbox": {"cluster", "producer"},
    "compat": {"admin", "cluster", "consumer", "group", "producer", "protocol", "records"},
    "worker": {"admin", "cluster", "consumer", "group", "producer", "records", "security", "transforming"},
    "spark": {"admin", "cluster", "consumer", "group", "net", "producer", "protocol", "records", "security"},
    "testing": {"broker", "consumer", "producer", "protocol", "records", "security", "worker"},
    "migration": set(),
    "cli": {
        "admin",
        "broker",
        "cluster",
        "consumer",
        "migration",
        "net",
        "outbox",
        "producer",
        "protocol",
        "records",
        "spark",
        "security",
        "telemetry",
        "worker",
    },
}
# Within layer 1: the root modules that each root module imports.
ROOT_MAY_IMPORT = {
    "error_codes": set(),
    "errors": {"_text", "error_codes"},
    "backoff": {"clock", "errors"},
    "config": {"errors"},
    "machine": {"errors"},
    "types": {"_text", "errors"},
    "hooks": {"types"},
    "log_fields": {"errors", "types"},
    "metrics": {"errors"},
    "otlp": {"errors", "metrics"},
    "units": set(),
}


def _sources() -> list[pathlib.Path]:
    return sorted(path for path in ROOT.rglob("*.py") if "build" not in path.parts)


def _home(name: str) -> str:
    """Return the module that defines a public name of the root."""
    value = getattr(aiokwire, name, None)
    module = getattr(value, "__module__", "") or ""
    return module.split(".")[1] if module.startswith("aiokwire.") else name


def _imports(path: pathlib.Path) -> list[tuple[int, str]]:
    """Return line and absolute dotted name of each import of this package."""
    found = []
    package = ("aiokwire", *path.relative_to(ROOT).parts[:-1])
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                stem = ".".join(package[: len(package) - node.level + 1])
                base = f"{stem}.{base}" if base else stem
            if base == "aiokwire":
                found += [(node.lineno, f"aiokwire.{_home(alias.name)}") for alias in node.names]
            else:
                found.append((node.lineno, base))
    return [row for row in found if row[1].split(".")[0] == "aiokwire"]


@functools.cache
def _imported_names(path: pathlib.Path) -> list[tuple[int, str]]:
    """Return the imports of a module, with each imported name, which may be a module."""
    names = [
        (node.lineno, f"{node.module}.{alias.name}")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    return [*_imports(path), *names]


def test_imports_point_down() -> None:
    wrong = []
    for path in _sources():
        parts = path.relative_to(ROOT).with_suffix("").parts
        owner = parts[0]
        if owner in {"__init__", "__main__"}:
            continue
        for line, name in _imports(path):
            target = name.split(".")[1] if "." in name else ""
            if target == owner:
                continue
            allowed = ROOT_MAY_IMPORT.get(owner, set()) if owner in ROOT_MODULES else ROOT_MODULES | MAY_IMPORT[owner]
            if target not in allowed:
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {name}")
    assert not wrong, "\n".join(wrong)


def test_packages_are_imported_through_their_init() -> None:
    wrong = []
    for path in _sources():
        owner = path.relative_to(ROOT).parts[0]
        for line, name in _imports(path):
            parts = name.split(".")
            # Generated messages are separate modules, so each loads when first used.
            if len(parts) <= 2 or parts[1] == owner or parts[1:3] == ["protocol", "messages"]:
                continue
            if parts[1:] == ["spark", "pipelines"]:
                continue  # modules that need Spark have their own entry point
            if parts[1] in MAY_IMPORT:
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {name}")
    assert not wrong, "\n".join(wrong)


def test_few_short_modules_serve_a_single_sibling() -> None:
    """A helper of one module belongs into that module, unless it is a table that is tested
    alone."""
    importers: dict[str, set[pathlib.Path]] = {}
    for path in _sources():
        for _, name in _imported_names(path):
            importers.setdefault(name, set()).add(path)
    alone = []
    for path in _sources():
        parts = path.relative_to(ROOT).with_suffix("").parts
        users = importers.get(".".join(("aiokwire", *parts)), set())
        if (
            parts[0] in ("cli", "compat")
            or {"handlers", "messages"} & {*parts}
            or len(path.read_text().splitlines()) >= 130
        ):
            continue
        if len(users) == 1 and (user := min(users)).parent == path.parent and user.name != "__init__.py":
            alone.append(f"{path.relative_to(ROOT)} is imported by {user.name} only")
    assert len(alone) < 25, "\n".join(alone)


@pytest.mark.parametrize("package", sorted(MAY_IMPORT))
def test_all_lists_the_public_names_of_a_package(package: str) -> None:
    module = importlib.import_module(f"aiokwire.{package}")
    listed = module.__all__
    assert len(set(listed)) == len(listed), "__all__ has no duplicates (ruff checks its order)"
    for name in listed:
        assert getattr(module, name) is not None or name == "__version__"


def test_every_public_name_of_the_root_resolves() -> None:
    assert len(dir(aiokwire)) > 70
    for name in dir(aiokwire):
        assert getattr(aiokwire, name) is not None


@pytest.mark.parametrize(
    "package", [path.parent for path in _sources() if "lazy_names(" in path.read_text() and path.name == "__init__.py"]
)
def test_type_checkers_and_programs_see_the_same_public_names(package: pathlib.Path) -> None:
    tree = ast.parse((package / "__init__.py").read_text())
    imports = [
        (node.module, alias)
        for branch in tree.body
        if isinstance(branch, ast.If) and ast.unparse(branch.test) == "TYPE_CHECKING"
        for node in branch.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    assert all(alias.asname == alias.name for _, alias in imports), "type checkers re-export only `A as A`"
    module = importlib.import_module(".".join(("aiokwire", *package.relative_to(ROOT).parts)))
    assert {alias.name for _, alias in imports} == set(dir(module)) - {"__version__"}
    for home, alias in imports:
        assert getattr(importlib.import_module(str(home)), alias.name) is getattr(module, alias.name)


def test_every_module_can_be_imported_alone() -> None:
    names = [info.name for info in pkgutil.walk_packages([str(ROOT)], "aiokwire.")]
    assert len(names) > 20
    for name in names:
        if not name.startswith("aiokwire.__main__"):
            importlib.import_module(name)


def test_importing_aiokwire_loads_neither_broker_nor_cli() -> None:
    script = (
        "import sys, aiokwire, aiokwire.producer, aiokwire.consumer\n"
        "unwanted = ('aiokwire.broker', 'aiokwire.cli', 'aiokwire.spark', 'aiokwire.telemetry', 'pyarrow', 'rich')\n"
        "heavy = [name for name in sys.modules if name.startswith(unwanted)]\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
