"""What the codemod reports: the place, the name, and what to do."""

from __future__ import annotations

from typing import NamedTuple


class Finding(NamedTuple):
    """Something that the program's author has to change or check."""

    line: int
    name: str
    advice: str
