"""What the hooks change in Markdown: the sentence after `Raises:` of a docstring becomes a list."""

from __future__ import annotations

import re

_RAISES = re.compile(r"^Raises: (?P<text>.+?)(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)
_NEXT = re.compile(r"(?:;|\.) (?=[A-Z]\w+(?:, [A-Z]\w+)*(?:: |\.?$))")
_ENTRY = re.compile(r"(?P<names>[A-Z]\w+(?:, [A-Z]\w+)*)(?:: (?P<reason>.+)|\.?)")


def with_list_of_errors(docstring: str) -> str:
    """Return a docstring with its `Raises:` paragraph as a heading and a list."""
    return _RAISES.sub(_raises, docstring)


def _raises(match: re.Match[str]) -> str:
    sentence = " ".join(match["text"].split())
    lines = [_line(entry) for part in _NEXT.split(sentence) if (entry := _ENTRY.fullmatch(part))]
    if len(lines) < len(_NEXT.split(sentence)):
        return f"**Raises:** {sentence}"
    return "\n".join(["**Raises:**", "", *lines])


def _line(entry: re.Match[str]) -> str:
    listed = ", ".join(f"`{name}`" for name in entry["names"].split(", "))
    return f"- {listed}: {entry['reason'].rstrip('.')}" if entry["reason"] else f"- {listed}"
