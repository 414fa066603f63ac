"""Java's properties files (`java.util.Properties.load`).

`name=value`, `name: value` or `name value`; comments begin with `#` or `!`; a backslash at the end
of a line continues it, and begins an escape elsewhere, as in Java's character literals.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from aiokwire.errors import ConfigurationError

_ESCAPE: Final = re.compile(r"\\(u+[0-9a-fA-F]{4}|.|$)", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_ENTRY: Final = re.compile(r"(?P<name>(?:[^\\ \t\f=:]|\\.)*)[ \t\f]*[=:]?[ \t\f]*(?P<value>.*)", re.DOTALL)
_BLANKS: Final = " \t\f"


def parse_properties(text: str) -> dict[str, str]:
    r"""Return the entries of a properties file; the last of equal names counts.

    Raises: ConfigurationError: a `\u` without four hexadecimal digits, with its line.
    """
    entries = {}
    for number, line in _logical_lines(text):
        found = _ENTRY.match(line)
        assert found is not None  # it matches every text
        entries[_unescaped(found.group("name"), number)] = _unescaped(found.group("value"), number)
    return entries


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each entry with the number of its first line, its continuation lines joined."""
    parts: list[str] = []
    first = 0
    for number, natural in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        line = natural.lstrip(_BLANKS)
        if not parts:
            if not line or line[0] in "#!":
                continue
            first = number
        continues = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        parts.append(line[:-1] if continues else line)
        if not continues:
            yield first, "".join(parts)
            parts = []
    if parts:
        yield first, "".join(parts)


def _unescaped(text: str, number: int) -> str:
    def replace(found: re.Match[str]) -> str:
        escape = found.group(1)
        if escape == "u":
            raise ConfigurationError(f"line {number} of the properties has \\u without four hexadecimal digits")
        if len(escape) > 1:
            return chr(int(escape[-4:], 16))
        return _ESCAPES.get(escape, escape)

    plain = _ESCAPE.sub(replace, text)
    # Java writes a character beyond U+FFFF as two escapes.
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
