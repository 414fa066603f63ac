"""Migrates the text of one module."""

from __future__ import annotations

import difflib
from typing import NamedTuple

import libcst as cst

from aiokwire.migration import rules
from aiokwire.migration.findings import Finding
from aiokwire.migration.imports import ImportRewriter
from aiokwire.migration.program import OLD, Program
from aiokwire.migration.rewriter import Rewriter
from aiokwire.migration.transactions import with_blocks


class Migrated(NamedTuple):
    """The text after a migration, and what is left to do; lines are those of the new text."""

    text: str
    findings: tuple[Finding, ...]


class UnreadableSource(ValueError):
    """The text is not a Python module that can be parsed."""


def migrate_source(source: str, *, keep_defaults: bool = False, todo: bool = False) -> Migrated:
    """Rewrite a module that uses aiokafka to aiokwire.

    Args:
        source: the text of the module.
        keep_defaults: write aiokafka's defaults into constructors where aiokwire's differ.
        todo: insert a comment for each finding.

    Raises: UnreadableSource: the text cannot be parsed.
    """
    if OLD not in source and not any(name in source for name in rules.DISTINCTIVE):
        return Migrated(source, ())
    try:
        module = with_blocks(cst.parse_module(source))
    except cst.ParserSyntaxError as error:
        raise UnreadableSource(f"line {error.raw_line}: {error.message}") from None
    program = Program(module)
    rewriter = Rewriter(program, keep_defaults=keep_defaults, todo=todo)
    rewritten = program.module.visit(rewriter)
    imports = ImportRewriter(program, rewriter.names)
    text = rewritten.visit(imports).code
    return Migrated(text, tuple(_moved(rewriter.findings, module.code, text)))


def _moved(findings: list[Finding], before: str, after: str) -> list[Finding]:
    """Return findings with the lines of the new text."""
    lines: dict[int, int] = {}
    matcher = difflib.SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    for _, old, old_end, new, new_end in matcher.get_opcodes():
        for index in range(old, old_end):
            lines[index + 1] = min(new + index - old, max(new_end - 1, new)) + 1
    return sorted(each._replace(line=lines.get(each.line, each.line)) for each in findings)
