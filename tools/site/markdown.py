"""What the site changes in Markdown before it is rendered: the errors of docstrings, and lists."""

from __future__ import annotations

import re

_ITEM = re.compile(r"(?:[-*]|\d+\.) ")
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


def with_wide_lists(markdown: str) -> str:
    """Return Markdown with four spaces before the blocks in list items: Python-Markdown needs them.

    CommonMark, in which the pages are written, needs as many as the item's marker is wide.
    """
    width, in_fence, after_blank, lines = 0, False, True, []
    for line in markdown.splitlines():
        if line.startswith("```"):
            in_fence = not in_fence
        if line[:1].strip() and not in_fence:
            item = _ITEM.match(line)
            width = len(item.group()) if item else 0 if after_blank or line.startswith("```") else width
        wide = width and not in_fence and line.startswith(" " * width)
        lines.append(" " * (4 - width) + line if wide else line)
        after_blank = not line.strip()
    return "\n".join(lines) + "\n"
