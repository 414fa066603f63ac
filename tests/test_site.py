"""The documentation site is complete: public names, errors, pages, and examples of docstrings.

`make docs` builds it and fails for a link without a target; these tests need no MkDocs.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType

import pytest

import aiokwire
import aiokwire.errors
from tests import error_codes_page
from tools.site.markdown import with_list_of_errors, with_wide_lists

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
CONFIG = (ROOT / "tools" / "site" / "mkdocs.yml").read_text()
PACKAGES = [
    "aiokwire", "aiokwire.admin", "aiokwire.broker", "aiokwire.errors", "aiokwire.outbox", "aiokwire.security",
    "aiokwire.telemetry", "aiokwire.testing", "aiokwire.web", "aiokwire.worker",
]  # fmt: skip


def public_names(package: str) -> list[str]:
    module = importlib.import_module(package)
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [name for name, value in vars(module).items() if getattr(value, "__module__", "") == package]


def public_objects() -> Iterator[tuple[str, object]]:
    for package in PACKAGES:
        for name in public_names(package):
            if not name.startswith("_"):
                yield f"{package}.{name}", getattr(importlib.import_module(package), name)


def documented() -> list[str]:
    """Return the names that the pages of the reference render."""
    pages = sorted((DOCS / "reference").glob("*.md"))
    return [name for page in pages for name in re.findall(r"^::: ([\w.]+)$", page.read_text(), re.MULTILINE)]


def resolved(path: str) -> object:
    package, _, name = path.rpartition(".")
    try:
        return getattr(importlib.import_module(package), name)
    except AttributeError:
        return importlib.import_module(path)


def test_each_public_name_is_on_a_page_of_the_reference() -> None:
    names = documented()
    shown = [resolved(name) for name in names]
    missing = [path for path, value in public_objects() if path not in names and not any(value is one for one in shown)]
    assert not missing, f"add `::: NAME` to a page in docs/reference for {missing}"


def test_the_reference_shows_each_name_once() -> None:
    names = documented()
    assert len(names) > 200
    assert len({id(resolved(name)) for name in names}) == len(names)


def error_classes() -> list[str]:
    classes = [value for _, value in public_objects() if isinstance(value, type)]
    return sorted({one.__name__ for one in classes if issubclass(one, aiokwire.KafkaError)})


def test_the_classes_of_errors_are_found() -> None:
    assert {"KafkaError", "DeserializationError", "StorageError"} <= set(error_classes())


@pytest.mark.parametrize("name", error_classes())
def test_the_page_of_error_messages_has_causes_and_remedy_of_each_class(name: str) -> None:
    sections = re.split(r"^##+ (.*)$", (DOCS / "errors.md").read_text(), flags=re.MULTILINE)
    by_heading = dict(zip(sections[1::2], sections[2::2], strict=True))
    assert name in by_heading, f"add a section on {name} to docs/errors.md"
    assert "- **Cause:**" in by_heading[name]
    assert "- **What to do:**" in by_heading[name]


def test_the_page_of_error_codes_matches_the_table_of_codes() -> None:
    assert error_codes_page.PAGE.read_text() == error_codes_page.page(), "run `python -m tests.error_codes_page`"


def test_each_page_is_in_the_navigation_once_or_left_out_on_purpose() -> None:
    navigation = re.findall(r"([\w./-]+\.md)$", CONFIG[CONFIG.rindex("\nnav:") :], re.MULTILINE)
    left_out = re.findall(r"^  /([\w-]+/)$", CONFIG, re.MULTILINE)
    pages = [page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")]
    missing = [page for page in pages if page not in navigation and not page.startswith(tuple(left_out))]
    assert not missing, f"add {missing} to the navigation in tools/site/mkdocs.yml"
    assert len(navigation) == len(set(navigation))


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.relative_to(DOCS).as_posix())
def test_drawings_have_no_semicolons_which_end_a_statement_of_mermaid(page: Path) -> None:
    drawings = re.findall(r"^```mermaid\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    assert [line for drawing in drawings for line in drawing.splitlines() if ";" in line] == []


def test_the_errors_in_a_docstring_become_a_list() -> None:
    text = with_list_of_errors("Send.\n\nRaises: InvalidArgument, RecordRejected: it was\nrefused; ClosedError.")
    assert text == "Send.\n\n**Raises:**\n\n- `InvalidArgument`, `RecordRejected`: it was refused\n- `ClosedError`"
    assert with_list_of_errors("Raises: as `send`.") == "**Raises:** as `send`."


def test_blocks_in_list_items_are_indented_by_four_spaces() -> None:
    assert with_wide_lists("1. Run:\n\n   ```sh\n   make\n   ```\n\n2. Look.\n") == (
        "1. Run:\n\n    ```sh\n    make\n    ```\n\n2. Look.\n"
    )
    assert with_wide_lists("- a\n  - b\n\ntext\n\n  c\n") == "- a\n    - b\n\ntext\n\n  c\n"
    assert with_wide_lists("- a\n\n```\n  - b\n```\n") == "- a\n\n```\n  - b\n```\n"


# --- examples in docstrings -------------------------------------------------------------------------------------------

# What the variables in the examples are.
VARIABLES: dict[str, object] = {
    "admin": aiokwire.Admin,
    "consumer": aiokwire.Consumer,
    "producer": aiokwire.Producer,
    "worker": aiokwire.Worker,
    "inbox": resolved("aiokwire.outbox.Inbox"),
    "outbox": resolved("aiokwire.outbox.Outbox"),
    "relay": resolved("aiokwire.outbox.OutboxRelay"),
    "tracing": resolved("aiokwire.telemetry.Tracing"),
    "services": resolved("aiokwire.web.Services"),
}
EXAMPLE = re.compile(r"\n\n((?:    .*(?:\n|\Z)|\n(?=    ))+)")


def docstring_examples() -> Iterator[tuple[str, str]]:
    for path, value in public_objects():
        members = vars(value) if isinstance(value, type) else {}
        named = [(path, value), *((f"{path}.{name}", member) for name, member in members.items())]
        for name, one in named:
            if isinstance(one, (type, FunctionType)):
                for example in EXAMPLE.findall(inspect.getdoc(one) or ""):
                    yield name, textwrap.dedent(example)


EXAMPLES = sorted(set(docstring_examples()))


@pytest.mark.parametrize(("name", "example"), EXAMPLES, ids=[name for name, _ in EXAMPLES])
def test_an_example_in_a_docstring_calls_what_exists_with_arguments_that_it_has(name: str, example: str) -> None:
    tree = ast.parse("async def example():\n" + textwrap.indent(example, "    "), name)
    checked = [check_call(node) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    assert any(checked), f"no call of {name}'s example was checked"


def check_call(call: ast.Call) -> bool:
    """Bind a call's arguments to the signature of what it calls; return whether that is known."""
    target, first = called(call.func)
    if target is None:
        return False
    arguments = [argument for argument in call.args if not is_ellipsis(argument)]
    options = {str(keyword.arg): keyword.value for keyword in call.keywords}
    inspect.signature(target).bind_partial(*first, *arguments, **options)
    return True


def called(function: ast.expr) -> tuple[Callable[..., object] | None, list[object]]:
    """Return what an expression calls, and the arguments before those of the call: `self`."""
    if isinstance(function, ast.Name):
        found = [value for path, value in public_objects() if path.endswith(f".{function.id}")]
        return (found[0], []) if found and callable(found[0]) else (None, [])
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        owner = {"aiokwire": aiokwire, **VARIABLES}.get(function.value.id)
        if owner is not None:  # an unknown name of it fails
            return getattr(owner, function.attr), [None] if isinstance(owner, type) else []
    return None, []


def is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...
