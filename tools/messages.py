"""`python -m tools.messages [KIND ...]`: every log line, error text and CLI text, with its place.

KIND is log, error, help or output; by default all of them.

Texts that the code builds from variables or returns from functions are not listed. Used to edit
the messages; `tests/test_language.py` checks the words of all files.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("aiokwire", "pyspark_aiokwire")
KINDS = ("log", "error", "help", "output")
LEVELS = frozenset({"debug", "info", "warning", "error", "exception", "critical", "log"})
ERROR_MAKERS = frozenset(
    {"error_for", "_fail", "_invalid", "_refuse", "_damaged"}
)  # functions that return or raise errors
ECHO = frozenset({"echo", "secho", "print"})
RAISED = re.compile(r"\braise (\w+)\(")  # in compiled modules, which `ast` cannot parse
STRING_OR_PAREN = re.compile(r'f?"((?:[^"\\\n]|\\.)*)"|[()]')


class Message(NamedTuple):
    """One text that a user or an operator can read."""

    path: str
    line: int
    kind: str  # one of KINDS
    text: str


def messages() -> Iterator[Message]:
    """Yield every message of the package, by file and line."""
    errors = _error_classes()
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py*")):
            place = path.relative_to(ROOT).as_posix()
            if path.suffix == ".pyx":
                yield from _raised(path.read_text(), place, errors)
            elif path.suffix == ".py" and "messages" not in path.relative_to(ROOT).parts:
                tree = ast.parse(path.read_text(), str(path))
                yield from sorted({*_calls(tree, place, errors), *_docstrings(tree, place), *_codes(tree, place)})


def _error_classes() -> frozenset[str]:
    """Return the names of exception classes: the project's, Python's and Click's."""
    names = {name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, Exception)}
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef) and any(_name(base) in names for base in node.bases):
                    names.add(node.name)
    return frozenset(names | {"UsageError", "BadParameter", "ClickException", "BadOptionUsage"} | ERROR_MAKERS)


def _calls(tree: ast.AST, place: str, errors: frozenset[str]) -> Iterator[Message]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = _name(node.func)
        if (
            name in LEVELS
            and isinstance(node.func, ast.Attribute)
            and _name(node.func.value) in {"logger", "log", "_log"}
        ):
            yield from _texts(node.args[:2], place, "log")
        elif name in errors:
            yield from _texts(node.args, place, "error")
        elif name in ECHO:
            yield from _texts(node.args, place, "output")
        for keyword in node.keywords:
            if keyword.arg in {"help", "short_help", "epilog", "metavar"}:
                yield from _texts([keyword.value], place, "help")


def _codes(tree: ast.AST, place: str) -> Iterator[Message]:
    """Yield the descriptions of the error codes, the last value of each."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == "ErrorCode":
            for member in node.body:
                if isinstance(member, ast.Assign) and isinstance(member.value, ast.Tuple):
                    yield from _texts(member.value.elts[-1:], place, "error")


def _raised(source: str, place: str, errors: frozenset[str]) -> Iterator[Message]:
    """Yield the texts of the errors that a compiled module raises."""
    for start in RAISED.finditer(source):
        depth, parts = 1, []
        for token in STRING_OR_PAREN.finditer(source, start.end()):
            depth += {"(": 1, ")": -1}.get(token[0], 0)
            if not depth:
                break
            parts.append(token[1] or "")
        text = "".join(parts)
        if text and start[1] in errors:
            yield Message(place, source.count("\n", 0, start.start()) + 1, "error", text)


def _docstrings(tree: ast.AST, place: str) -> Iterator[Message]:
    """Yield the docstrings of commands, which Click prints."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and place.startswith("aiokwire/cli/"):
            decorators = {_name(one.func if isinstance(one, ast.Call) else one) for one in node.decorator_list}
            text = ast.get_docstring(node)
            if text and decorators & {"command", "group", "Command", "Group"}:
                yield Message(place, node.lineno, "help", text)


def _texts(nodes: list[ast.expr], place: str, kind: str) -> Iterator[Message]:
    for node in nodes:
        text = _text(node)
        if text and any(letter.isalpha() for letter in text):
            yield Message(place, node.lineno, kind, text)


def _text(node: ast.expr) -> str:
    """Return a string as in the source, with the expressions of an f-string in braces."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(
            "{" + ast.unparse(part.value) + "}" if isinstance(part, ast.FormattedValue) else _text(part)
            for part in node.values
        )
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mod)):
        return _text(node.left) + (_text(node.right) if isinstance(node.op, ast.Add) else "")
    if isinstance(node, ast.IfExp):
        return " | ".join(filter(None, (_text(node.body), _text(node.orelse))))
    return ""


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript):
        return _name(node.value)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def main() -> int:
    wanted = sys.argv[1:] or list(KINDS)
    if {"-h", "--help"} & set(wanted):
        print(__doc__)
        return 0
    unknown = sorted(set(wanted) - set(KINDS))
    if unknown:
        print(f"unknown kind: {', '.join(unknown)} (there are {', '.join(KINDS)})", file=sys.stderr)
        return 2
    for message in messages():
        if message.kind in wanted:
            print(f"{message.path}:{message.line}: {message.kind}: {' '.join(message.text.split())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
