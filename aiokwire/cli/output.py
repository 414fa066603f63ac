"""Tables for terminals, by rich if it is installed; tab-separated lines and JSON for programs."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from aiokwire._text import printable

# Without a terminal, rich assumes 80 columns and truncates names.
_ENDLESS: Final = 100_000


def print_json(value: object) -> None:
    """Print one line of JSON."""
    print(json.dumps(value, separators=(",", ":"), ensure_ascii=False))


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table; without a terminal or rich, tab-separated lines, the columns' names first.

    Those have numbers without separators, and no title. Control characters are escaped: names,
    client ids and config values are not trusted.
    """
    rows = [list(row) for row in rows]
    if sys.stdout.isatty() and _has_rich():
        print_report(title, columns, rows)
    else:
        _print_lines(columns, rows)


def _print_lines(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    for cells in (columns, *rows):
        print(*map(printable, cells), sep="\t")


def _has_rich() -> bool:
    return importlib.util.find_spec("rich") is not None


def print_errors(errors: Collection[Exception]) -> int:
    """Print a line for each error to standard error; return the command's exit status."""
    for error in errors:
        print(f"error: {error}", file=sys.stderr)
    return 1 if errors else 0


def print_report(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a drawn table; without a terminal, nothing is truncated or wrapped.

    Columns of numbers are aligned right. Without rich, print tab-separated lines.
    """
    if not _has_rich():
        _print_lines(columns, rows)
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    rows = [list(row) for row in rows]
    table = Table(title=Text(printable(title)), title_justify="left")
    for index, name in enumerate(columns):
        numeric = bool(rows) and all(isinstance(row[index], (int, float)) for row in rows)
        table.add_column(Text(printable(name)), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(_text(value)) for value in row))  # plain text: brackets are not markup
    Console(width=None if sys.stdout.isatty() else _ENDLESS).print(table)


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.3f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return printable(value)
