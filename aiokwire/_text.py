"""Escapes text from other hosts for logs, error messages and terminals.

Topic names, host names and error messages arrive over the wire. Without escapes, a line end forges
a log line, an escape sequence controls the operator's terminal, and a bidirectional override
displays a different text (CVE-2021-42574).
"""

from __future__ import annotations

import re
from typing import Final

# C0 and DEL, C1 (with NEL), bidirectional marks, embeddings, overrides and isolates, line and paragraph separators,
# interlinear annotations, the byte order mark, and surrogates, which no encoder accepts.
_UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
_SHORT: Final = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def printable(text: object) -> str:
    r"""Return `str(text)` on one line, with control characters as escapes (`\n`, `\x1b`, `\u202e`).

    Everything else is unchanged, including backslashes: the result is for reading, not for parsing.
    """
    text = str(text)
    if text.isprintable():  # the common case, without a search
        return text
    return _UNSAFE.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    character = found.group()
    short = _SHORT.get(character)
    if short is not None:
        return short
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
