"""`aiokwire migrate`: rewrites programs that use aiokafka to aiokwire."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from aiokwire._text import printable

if TYPE_CHECKING:
    from aiokwire.migration import FileResult

WIDTH: Final = 80
UNREADABLE: Final = 2


@click.command("migrate")
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--write", is_flag=True, help="Change the files.")
@click.option("--diff", is_flag=True, help="Print the changes as a diff: the default without --write and --check.")
@click.option("--check", is_flag=True, help="Print no diff; exit with 1 if a file would change.")
@click.option("--todo", is_flag=True, help="Insert a comment at each place that needs manual work.")
@click.option("--keep-defaults", is_flag=True, help="Add aiokafka's defaults as arguments where aiokwire's differ.")
def command(*, paths: tuple[Path, ...], write: bool, diff: bool, check: bool, todo: bool, keep_defaults: bool) -> None:
    """Rewrite programs that use aiokafka to aiokwire: files, or all Python files in folders.

    Prints a diff, and to standard error the manual work that remains: file:line: name: what to do.
    Code that cannot be rewritten safely is left unchanged. Exits with 2 if a file cannot be read.
    """
    try:
        from aiokwire.migration import UnreadableFile, migrate_file, python_files
    except ModuleNotFoundError as error:
        if error.name != "libcst":
            raise
        raise click.ClickException("this needs libcst: pip install 'aiokwire[migrate]'") from None
    results: list[FileResult] = []
    failures = 0
    for path in python_files(paths):
        try:
            result = migrate_file(path, keep_defaults=keep_defaults, todo=todo)
        except UnreadableFile as error:
            failures += 1
            _explain(f"error: {error}")
            continue
        _show(result, diff=diff or not (write or check), write=write)
        results.append(result)
    _summarize(results, failures, written=write)
    changed = any(each.is_changed for each in results)
    sys.exit(UNREADABLE if failures else 1 if check and changed else 0)


def _show(result: FileResult, *, diff: bool, write: bool) -> None:
    from aiokwire.migration import unified_diff

    if diff and result.is_changed:
        click.echo(unified_diff(result), nl=False)
    if write and result.is_changed:
        result.write()
    for finding in result.findings:
        _explain(f"{result.path}:{finding.line}: {finding.name}: {finding.advice}")


def _explain(text: str) -> None:
    """Print a line to standard error, wrapped at 80 columns."""
    lines = textwrap.wrap(
        printable(text), WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    click.echo("\n".join(lines), err=True)


def _summarize(results: Iterable[FileResult], failures: int, *, written: bool) -> None:
    results = list(results)
    changed = sum(each.is_changed for each in results)
    places = sum(len(each.findings) for each in results)
    parts = [f"{_count(changed, 'file')} {'changed' if written else 'would change'}"]
    if places:
        parts.append(f"{_count(places, 'place')} to look at")
    if failures:
        parts.append(f"{_count(failures, 'file')} not read")
    click.echo(f"{', '.join(parts)} (of {_count(len(results) + failures, 'file')})", err=True)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
