"""Compiles a pattern to the program of an automaton (Thompson), without recursion.

A fragment is a list of instructions with relative jumps: joining and repeating lists joins and
repeats fragments. Greedy and lazy repetition are the same: only whole names match, without groups.
"""

from __future__ import annotations

import enum
import re
from typing import Final, NamedTuple, NoReturn

MAX_SIZE = 20_000  # instructions of one program: about a thousand names of topics
MAX_LENGTH = 10_000  # characters: reading them takes up to 20 ms
MAX_DEPTH = 1000  # of nested groups, as in RE2
MAX_REPEAT = 1000  # in `{n,m}`, as in RE2
_LAST_CODE = 0x10FFFF

Ranges = tuple[tuple[int, int], ...]  # of code points, sorted, both ends included


class Op(enum.IntEnum):
    """The operation of an instruction; `x` and `y` are its operands."""

    LITERAL = 0  # take the character with code x
    CLASS = 1  # take a character of the ranges
    SPLIT = 2  # continue at x and at y
    JUMP = 3  # continue at x
    ASSERT = 4  # continue where the assertion x holds
    MATCH = 5


class Assertion(enum.IntEnum):
    """A condition between two characters."""

    BEGIN_TEXT = 0
    END_TEXT = 1
    BEGIN_LINE = 2
    END_LINE = 3
    WORD_BOUNDARY = 4
    NO_WORD_BOUNDARY = 5


class Instruction(NamedTuple):
    """One step. Jumps are relative to the instruction itself."""

    op: Op
    x: int = 0
    y: int = 0
    ranges: Ranges = ()


class InvalidPattern(ValueError):
    """The pattern is not valid in RE2, or too large; the message gives the reason."""


Code = list[Instruction]


class _Flags(NamedTuple):
    ignore_case: bool = False
    multi_line: bool = False
    dot_all: bool = False


def ranges_of(*pairs: tuple[int, int]) -> Ranges:
    """Sort the ranges of characters and join those that touch."""
    joined: list[tuple[int, int]] = []
    for low, high in sorted(pairs):
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], high))
        else:
            joined.append((low, high))
    return tuple(joined)


def _negated(ranges: Ranges) -> Ranges:
    found, start = [], 0
    for low, high in ranges:
        if low > start:
            found.append((start, low - 1))
        start = high + 1
    if start <= _LAST_CODE:
        found.append((start, _LAST_CODE))
    return tuple(found)


def _codes(text: str) -> Ranges:
    """Return the ranges that a text names by pairs: `"az09"` is a to z and 0 to 9."""
    return ranges_of(*((ord(text[at]), ord(text[at + 1])) for at in range(0, len(text), 2)))


_DIGITS = _codes("09")
_SPACES = _codes("\t\n\f\r  ")
_WORDS = _codes("azAZ09__")
_PERL: Final = {"d": _DIGITS, "s": _SPACES, "w": _WORDS}
_POSIX: Final = {
    "alnum": _codes("azAZ09"),
    "alpha": _codes("azAZ"),
    "ascii": _codes("\x00\x7f"),
    "blank": _codes("\t\t  "),
    "cntrl": _codes("\x00\x1f\x7f\x7f"),
    "digit": _DIGITS,
    "graph": _codes("!~"),
    "lower": _codes("az"),
    "print": _codes(" ~"),
    "punct": _codes("!/:@[`{~"),
    "space": _codes("\t\r  "),
    "upper": _codes("AZ"),
    "word": _WORDS,
    "xdigit": _codes("09afAF"),
}
_CONTROL: Final = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}
_ASSERTIONS: Final = {
    "A": Assertion.BEGIN_TEXT,
    "z": Assertion.END_TEXT,
    "b": Assertion.WORD_BOUNDARY,
    "B": Assertion.NO_WORD_BOUNDARY,
}
_ANY = ((0, _LAST_CODE),)
_ANY_BUT_NEWLINE = _negated(_codes("\n\n"))

_PLAIN = re.compile(r"[^\\\[(){|*+?.^$]+")
_COUNTS = re.compile(r"\{(\d{1,9})(,?)(\d{0,9})\}", re.ASCII)
_GROUP = re.compile(r"\?(?:P?<(?P<name>\w+)>|(?P<on>[imsU]*)(?:-(?P<off>[imsU]+))?(?P<end>[:)]))", re.ASCII)
_HEX = re.compile(r"x(?:([0-9a-fA-F]{2})|\{([0-9a-fA-F]{1,8})\})")
_OCTAL = re.compile(r"0[0-7]{0,2}|[1-7][0-7]{1,2}")
_POSIX_NAME = re.compile(r"\[:(\^?)(\w+):\]", re.ASCII)


class _Group:
    """A group that is being parsed."""

    __slots__ = ("branches", "code", "flags", "last", "repeated")

    def __init__(self, flags: _Flags) -> None:
        self.flags = flags
        self.branches: list[Code] = []  # before the last `|`
        self.code: Code = []
        self.last = -1  # where the last atom starts, to which a repetition applies
        self.repeated = False  # the last atom has a repetition

    def add(self, atom: Code) -> None:
        """Append an atom."""
        self.last = len(self.code)
        self.repeated = False
        self.code += atom

    def branch(self) -> None:
        """Start the next alternative."""
        self.branches.append(self.code)
        self.code, self.last = [], -1

    def close(self) -> Code:
        """All alternatives as one fragment."""
        if not self.branches:
            return self.code
        total = sum(len(each) + 2 for each in self.branches) + len(self.code)
        joined: Code = []
        for each in self.branches:
            joined.append(Instruction(Op.SPLIT, 1, len(each) + 2))
            joined += each
            joined.append(Instruction(Op.JUMP, total - len(joined)))
        return joined + self.code


class Parser:
    """Parses one pattern."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._groups = [_Group(_Flags())]
        self._names: set[str] = set()

    def parse(self) -> Code:
        """Return the program, with `MATCH` at its end.

        Raises: InvalidPattern.
        """
        if len(self._text) > MAX_LENGTH:
            self._fail(f"the pattern is too long: {len(self._text)} characters, at most {MAX_LENGTH}")
        while self._at < len(self._text):
            plain = _PLAIN.match(self._text, self._at)
            if plain is not None:
                self._at = plain.end()
                self._literals(plain.group())
            else:
                self._special(self._text[self._at])
        if len(self._groups) > 1:
            self._fail("missing closing )")
        program = self._groups[0].close()
        self._check_size(len(program))
        return [*program, Instruction(Op.MATCH)]

    def _fail(self, why: str) -> NoReturn:
        raise InvalidPattern(f"{why} (at {self._at})")

    def _check_size(self, size: int) -> None:
        if size > MAX_SIZE:
            self._fail(f"the pattern is too large: more than {MAX_SIZE} steps")

    def _special(self, character: str) -> None:
        group = self._groups[-1]
        self._at += 1
        match character:
            case "(":
                self._open()
            case ")":
                self._close()
            case "|":
                group.branch()
            case "*" | "+" | "?":
                low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}[character]
                self._repeat(low, high)
            case "{":
                self._counted()
            case "[":
                group.add([_taking(self._folded(self._class()))])
            case ".":
                group.add([_taking(_ANY if group.flags.dot_all else _ANY_BUT_NEWLINE)])
            case "^":
                many = group.flags.multi_line
                group.add([Instruction(Op.ASSERT, Assertion.BEGIN_LINE if many else Assertion.BEGIN_TEXT)])
            case "$":
                many = group.flags.multi_line
                group.add([Instruction(Op.ASSERT, Assertion.END_LINE if many else Assertion.END_TEXT)])
            case _:
                self._escape()

    # --- atoms --------------------------------------------------------------------------------------------------------

    def _literals(self, text: str) -> None:
        group = self._groups[-1]
        self._check_size(len(group.code) + len(text))
        if group.flags.ignore_case:
            folded = {each: _taking(self._folded(((ord(each), ord(each)),))) for each in set(text)}
            atoms = [folded[each] for each in text]
        else:
            atoms = [Instruction(Op.LITERAL, ord(each)) for each in text]
        group.code += atoms[:-1]
        group.add(atoms[-1:])

    def _folded(self, ranges: Ranges) -> Ranges:
        """Add the other case of the letters if the flag is set."""
        if not self._groups[-1].flags.ignore_case:
            return ranges
        more = list(ranges)
        for low, high in ranges:
            for first, last, shift in ((65, 90, 32), (97, 122, -32)):
                if max(low, first) <= min(high, last):
                    more.append((max(low, first) + shift, min(high, last) + shift))
            if low == high > 127:
                more += [(ord(each), ord(each)) for each in (chr(low).lower(), chr(low).upper()) if len(each) == 1]
        return ranges_of(*more)

    def _escape(self) -> None:
        """Parse an escape outside of a class."""
        group = self._groups[-1]
        following = self._text[self._at : self._at + 1]
        if following in _ASSERTIONS and following:
            self._at += 1
            group.add([Instruction(Op.ASSERT, _ASSERTIONS[following])])
        elif following == "Q":
            end = self._text.find("\\E", self._at + 1)
            quoted = self._text[self._at + 1 : end if end >= 0 else None]
            self._at = end + 2 if end >= 0 else len(self._text)
            if quoted:
                self._literals(quoted)
        else:
            group.add([_taking(self._folded(self._escaped()))])

    def _escaped(self) -> Ranges:
        """Parse an escape: one character or a class."""
        following = self._text[self._at : self._at + 1]
        if not following:
            self._fail("the pattern ends in a backslash")
        if following.lower() in _PERL:
            self._at += 1
            ranges = _PERL[following.lower()]
            return ranges if following.islower() else _negated(ranges)
        code = self._escaped_code(following)
        return ((code, code),)

    def _escaped_code(self, following: str) -> int:
        coded = _HEX.match(self._text, self._at)
        octal = _OCTAL.match(self._text, self._at)
        if coded is not None:
            self._at = coded.end()
            code = int(coded[1] or coded[2], 16)
            if code > _LAST_CODE:
                self._fail("invalid character code")
            return code
        if octal is not None:
            self._at = octal.end()
            return int(octal.group(), 8)
        if following not in _CONTROL and (following.isalnum() or not following.isascii()):
            self._fail(f"unsupported escape \\{following}")
        self._at += 1
        return _CONTROL.get(following, ord(following))

    # --- classes ------------------------------------------------------------------------------------------------------

    def _class(self) -> Ranges:
        text = self._text
        negated = text[self._at : self._at + 1] == "^"
        self._at += negated
        pairs: list[tuple[int, int]] = []
        first = True
        while first or text[self._at : self._at + 1] != "]":
            if self._at >= len(text):
                self._fail("missing closing ]")
            pairs += self._class_item()
            first = False
        self._at += 1
        ranges = ranges_of(*pairs)
        return _negated(self._folded(ranges)) if negated else ranges

    def _class_item(self) -> Ranges:
        named = _POSIX_NAME.match(self._text, self._at)
        if named is not None:
            if named[2] not in _POSIX:
                self._fail(f"unknown character class [:{named[2]}:]")
            self._at = named.end()
            return _negated(_POSIX[named[2]]) if named[1] else _POSIX[named[2]]
        low = self._class_character()
        text, at = self._text, self._at
        if text[at : at + 1] != "-" or text[at + 1 : at + 2] in ("", "]"):
            return low
        self._at += 1
        high = self._class_character()
        if len(low) > 1 or len(high) > 1 or low[0][0] != low[0][1] or high[0][0] != high[0][1] or low > high:
            self._fail("invalid character range")
        return ((low[0][0], high[0][0]),)

    def _class_character(self) -> Ranges:
        character = self._text[self._at]
        self._at += 1
        return self._escaped() if character == "\\" else ((ord(character), ord(character)),)

    # --- groups and repetition ----------------------------------------------------------------------------------------

    def _open(self) -> None:
        group = self._groups[-1]
        if len(self._groups) > MAX_DEPTH:
            self._fail(f"more than {MAX_DEPTH} nested groups")
        flags = group.flags
        if self._text[self._at : self._at + 1] == "?":
            header = _GROUP.match(self._text, self._at)
            if header is None:
                self._fail("unsupported group syntax")
            self._at = header.end()
            if header["name"] is not None:
                self._name(header["name"])
            else:
                flags = _changed(flags, header["on"], header["off"] or "")
            if header["end"] == ")":
                group.flags = flags  # up to the end of the group
                return
        self._groups.append(_Group(flags))

    def _name(self, name: str) -> None:
        if name in self._names:
            self._fail(f"duplicate group name {name}")
        self._names.add(name)

    def _close(self) -> None:
        if len(self._groups) == 1:
            self._fail("unexpected )")
        code = self._groups.pop().close()
        self._check_size(len(self._groups[-1].code) + len(code))
        self._groups[-1].add(code)

    def _counted(self) -> None:
        counts = _COUNTS.match(self._text, self._at - 1)
        if counts is None:
            self._literals("{")
            return
        self._at = counts.end()
        low = int(counts[1])
        high = (int(counts[3]) if counts[3] else None) if counts[2] else low
        if max(low, high or 0) > MAX_REPEAT or (high is not None and high < low):
            self._fail(f"invalid repetition of {low} to {high}: at most {MAX_REPEAT}")
        self._repeat(low, high)

    def _repeat(self, low: int, high: int | None) -> None:
        group = self._groups[-1]
        if group.last < 0:
            self._fail("nothing to repeat")
        if group.repeated:
            self._fail("nested repetition operator")
        if self._text[self._at : self._at + 1] == "?":
            self._at += 1  # lazy: the same names match
        atom = group.code[group.last :]
        self._check_size(group.last + (len(atom) + 1) * max(low + 1, high or 0))
        del group.code[group.last :]
        group.code += _repeated(atom, low, high)
        group.repeated = True


def _taking(ranges: Ranges) -> Instruction:
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return Instruction(Op.LITERAL, ranges[0][0])
    return Instruction(Op.CLASS, ranges=ranges)


def _changed(flags: _Flags, on: str, off: str) -> _Flags:
    def value(name: str, before: bool) -> bool:
        return name not in off and (before or name in on)

    return _Flags(value("i", flags.ignore_case), value("m", flags.multi_line), value("s", flags.dot_all))


def _repeated(atom: Code, low: int, high: int | None) -> Code:
    if high is None:
        if low == 0:
            return [Instruction(Op.SPLIT, 1, len(atom) + 2), *atom, Instruction(Op.JUMP, -len(atom) - 1)]
        return [*(atom * low), Instruction(Op.SPLIT, -len(atom), 1)]
    code = atom * low
    for left in range(high - low, 0, -1):
        code.append(Instruction(Op.SPLIT, 1, left * (len(atom) + 1)))
        code += atom
    return code
