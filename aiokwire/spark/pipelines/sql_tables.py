"""The tables that a query names, found without Spark: for order, cycles, and misspelt names.

Used by `graph`. Spark's parser decides when the steps are analysed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

# Comments and string literals first, then identifiers (a dotted name is one token), then single characters.
_TOKEN: Final = re.compile(
    r"(?P<skip>--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|\s+)"
    r"|(?P<name>(?:`(?:[^`]|``)*`|[A-Za-z_]\w*)(?:\s*\.\s*(?:`(?:[^`]|``)*`|[A-Za-z_]\w*))*)"
    r"|(?P<sign>.)",
    re.DOTALL,
)
# Functions with a FROM in their arguments: extract(hour from at).
_WITH_FROM: Final = frozenset({"extract", "trim", "substring", "substr", "overlay", "position"})
_ENDS_FROM: Final = frozenset(
    {"select", "where", "group", "having", "order", "sort", "cluster", "distribute", "limit", "window", "union",
     "except", "intersect", "minus", "qualify", "lateral", "on", "using"}
)  # fmt: skip
_BEFORE_NAMES: Final = frozenset({"from", "join"})
# Words that may take the place of a table.
_NO_TABLE: Final = frozenset({"select", "values", "lateral", "with", "table", "unnest"})


def tables(sql: str) -> list[str]:
    """Return the distinct names after FROM and JOIN, without those that the query defines.

    Names with dots belong to a catalog, and are left out.
    """
    tokens = list(_tokens(sql))
    own = _defined(tokens)
    found = dict.fromkeys(_named(tokens))
    return [name for name in found if "." not in name and name.lower() not in own]


def _tokens(sql: str) -> Iterator[str]:
    for match in _TOKEN.finditer(sql):
        if match.lastgroup == "name":
            yield re.sub(r"\s*\.\s*", ".", match[0])
        elif match.lastgroup == "sign":
            yield match[0]


def _defined(tokens: list[str]) -> set[str]:
    """Return the names defined by WITH: a name, optional columns in brackets, AS, a bracket."""
    if not any(token.lower() == "with" for token in tokens):
        return set()
    found = set()
    for index in range(1, len(tokens) - 1):
        if tokens[index].lower() == "as" and tokens[index + 1] == "(":
            before = index - 1
            if tokens[before] == ")":  # column names, without nested brackets
                before = max(place for place in range(before) if tokens[place] == "(") - 1
            found.add(_plain(tokens[before]).lower())
    return found


def _named(tokens: list[str]) -> Iterator[str]:
    # For each open bracket: whether a comma may be followed by a table, and whether FROM belongs to a function.
    levels = [[False, False]]
    expected = False
    for index, token in enumerate(tokens):
        word = token.lower()
        before = tokens[index - 1].lower() if index else ""
        if token == "(":
            levels.append([expected, before in _WITH_FROM])
            continue
        if token == ")":
            if len(levels) > 1:
                levels.pop()
            expected = False
            continue
        if word in _BEFORE_NAMES and not levels[-1][1] and before != "distinct":
            levels[-1][0] = expected = True
        elif token == ",":
            expected = levels[-1][0]
        elif word in _ENDS_FROM:
            levels[-1][0] = word in ("on", "using") and levels[-1][0]
            expected = False
        elif expected:
            expected = False
            after = tokens[index + 1] if index + 1 < len(tokens) else ""
            if word not in _NO_TABLE and after != "(" and (token[0].isalpha() or token[0] in "_`"):
                yield _plain(token)


def _plain(name: str) -> str:
    """Remove the quotes of a name without dots."""
    if name.startswith("`") and name.endswith("`") and name.count("`") == 2:
        return name[1:-1]
    return name
