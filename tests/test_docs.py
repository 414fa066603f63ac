"""The documents match the code: the file map lists every module, links and named tests exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests import file_map, machines, options_page

ROOT = Path(__file__).parents[1]
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_file_map_names_every_module() -> None:
    assert file_map.PAGE.read_text() == file_map.page(), "run `python -m tests.file_map` and commit docs/files.md"


def test_every_module_has_a_summary() -> None:
    without_summary = [str(path) for path in file_map.modules() if len(file_map.summary(path)) < 10]
    assert not without_summary, f"no docstring to put into docs/files.md: {without_summary}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_has_a_target(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text()):
        assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_every_file_and_symbol_named_in_the_architecture_exists() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    table = text[text.index("## Where to find what") :].split("\n## ")[0]
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| ") and "`" in line]
    assert len(rows) >= 60
    for _, place in rows:
        path, *symbols = re.findall(r"`([^`]+)`", place)
        source = (ROOT / path).read_text()
        for symbol in symbols:
            assert re.search(rf"^(?:cdef )?(?:class|(?:async )?def) {symbol}\b", source, re.MULTILINE), (
                f"{path} has no {symbol}"
            )


def test_the_diagrams_of_state_machines_match_their_tables() -> None:
    assert machines.PAGE.read_text() == machines.page(), "run `make generate`"


def test_the_page_of_options_matches_the_docstrings() -> None:
    assert options_page.PAGE.read_text() == options_page.page(), "run `python -m tests.options_page`"
    assert all(f"**`{name}`**" in options_page.page() for name in ("linger_ms", "group_id", "client_id"))


def test_every_state_machine_has_a_diagram() -> None:
    drawn = [machine.module.TRANSITIONS for machine in machines.MACHINES]
    assert [name for name, table in machines.tables().items() if table not in drawn] == []
    for machine in machines.MACHINES:
        assert any(source is machine.initial for source, _ in machine.module.TRANSITIONS)


@pytest.mark.parametrize("folder", ["aiokwire", "tests", "integration", "tools"])
def test_docstrings_fit_in_100_columns(folder: str) -> None:
    wide = []
    for path in (ROOT / folder).rglob("*.py"):
        lines = path.read_text().splitlines()
        for node in ast.walk(ast.parse("\n".join(lines))) if "messages" not in path.parts else ():
            if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
                text = node.body[0]
                assert text.end_lineno is not None
                numbers = range(text.lineno, text.end_lineno + 1)
                wide += [f"{path.relative_to(ROOT)}:{number}" for number in numbers if len(lines[number - 1]) > 100]
    assert wide == []


@pytest.mark.parametrize("document", [*DOCUMENTS, ROOT / "integration" / "README.md"], ids=lambda path: path.name)
def test_lines_of_prose_fit_in_100_columns(document: Path) -> None:
    without_code = re.sub(r"^ *```.*?^ *```", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)
    wide = [line for line in without_code.splitlines() if len(line) > 100]
    assert [line for line in wide if not line.startswith("|") and " " in line.strip("- ")] == []


def test_the_tests_named_by_invariants_exist() -> None:
    text = (ROOT / "docs" / "invariants.md").read_text()
    statements = text.split("\n- ")[1:]
    assert len(statements) > 30
    for statement in statements:
        check_named_tests(statement)


def test_the_tests_named_by_scenarios_exist() -> None:
    text = (ROOT / "docs" / "scenarios.md").read_text()
    statements = text[: text.index("## Who can share a group")].split("\n- ")[1:]
    numbers = {int(match[1]) for each in statements if (match := re.match(r"\*\*(\d+)\.\*\* ", each))}
    assert numbers >= set(range(2, 41, 2)) - {10}
    for statement in statements:
        check_named_tests(statement)


def check_named_tests(statement: str) -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", statement)
    assert named, f"no test is named for: {statement}"
    for path, name in named:
        assert f"def {name}(" in (ROOT / path).read_text(), f"{path} has no {name}"
