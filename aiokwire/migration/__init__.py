"""`aiokwire migrate`: rewrites programs that use aiokafka to aiokwire. Needs the extra `migrate`.

rules        what becomes of each name         source    one module: parse, rewrite, report
program      names, scopes, positions          rewriter  everything except imports
tracking     which variables are clients       imports   the import statements
calls, constructors, listeners, transactions: the parts of a program
names        local names, needed imports       nodes     building and formatting nodes
files        folders, diffs, writing           findings  what is left to do
"""

from aiokwire.migration.files import FileResult, UnreadableFile, migrate_file, python_files, unified_diff
from aiokwire.migration.findings import Finding
from aiokwire.migration.source import Migrated, UnreadableSource, migrate_source

__all__ = [
    "FileResult",
    "Finding",
    "Migrated",
    "UnreadableFile",
    "UnreadableSource",
    "migrate_file",
    "migrate_source",
    "python_files",
    "unified_diff",
]
