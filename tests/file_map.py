"""Writes docs/files.md from the modules' docstrings: `python -m tests.file_map`, part of `make generate`."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "files.md"
PACKAGE = ROOT / "aiokwire"
WIDTH = 100
HEAD = """# Files

Every module of the package with the first sentence of its docstring, for "where is it?". Written by
`python -m tests.file_map`, part of `make generate`; a test fails when this page is stale. The folders are
explained in [architecture](architecture.md).
"""
# Comments may stand above the docstring of a Cython file.
_DOCSTRING = re.compile(r'\A(?:\s*#[^\n]*\n)*\s*"""(.*?)"""', re.DOTALL)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\[(])")


def modules() -> Iterator[Path]:
    """Yield every hand-written source file, folder by folder; generated messages are their folder alone."""
    for path in sorted(PACKAGE.rglob("*"), key=lambda path: (path.parent.parts, path.name)):
        if path.suffix not in {".py", ".pyx", ".pxd"} or path.name in {"__init__.py", "__main__.py"}:
            continue
        if path.parent.name == "messages" or (path.suffix == ".pxd" and path.with_suffix(".pyx").exists()):
            continue
        yield path


def summary(path: Path) -> str:
    """Return the first sentence of a file's docstring on one line, empty if it has none."""
    found = _DOCSTRING.match(path.read_text())
    paragraph = found[1].strip().split("\n\n")[0] if found is not None else ""
    return _SENTENCE_END.split(" ".join(paragraph.split()))[0].rstrip(".:")


def page() -> str:
    """Return the text of docs/files.md."""
    folders: dict[Path, list[Path]] = {}
    for path in modules():
        folders.setdefault(path.parent, []).append(path)
    messages = PACKAGE / "protocol" / "messages"
    folders[messages] = []
    parts = [HEAD]
    for folder in sorted(folders):
        parts.append(f"## {folder.relative_to(ROOT).as_posix()}\n")
        parts.append(_wrapped(summary(folder / "__init__.py") + ".") + "\n")
        parts += [_wrapped(f"- `{path.name}`: {summary(path)}", indent="  ") for path in folders[folder]]
        parts += [""] if folders[folder] else []
    return "\n".join(parts).rstrip("\n") + "\n"


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write(f"wrote {PAGE.name}\n")
