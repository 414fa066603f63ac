"""Runs a pattern's program over names: a deterministic automaton, built as names need it.

Each name costs one lookup per character. A new state of the automaton costs at most the size of the
program; the total is bounded, so that any pattern takes milliseconds for any names.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final, NamedTuple

from aiokwire.broker.patterns.syntax import Assertion, Code, InvalidPattern, Op, Parser, Ranges

BUDGET = 40_000  # steps of a query besides one lookup per character: about 20 ms
MAX_STATES = 2000  # kept at a time


class PatternTooExpensive(InvalidPattern):
    """Matching takes too many steps."""


class Budget:
    """The steps that the patterns of one query may take together."""

    __slots__ = ("left",)

    def __init__(self, steps: int = BUDGET) -> None:
        self.left: int = steps

    def spend(self, steps: int) -> None:
        """Use up `steps` of the budget.

        Raises: PatternTooExpensive: the budget is used up.
        """
        self.left -= steps
        if self.left < 0:
            raise PatternTooExpensive("the pattern takes too many steps to match")


class _Context(NamedTuple):
    """What assertions check before or after a place in a name."""

    is_edge: bool  # of the name
    is_newline: bool
    is_word: bool


_EDGE: Final = _Context(True, False, False)


def _context(character: str) -> _Context:
    return _Context(False, character == "\n", character == "_" or (character.isascii() and character.isalnum()))


class _Choices(NamedTuple):
    """The transitions of a state for the characters of one context."""

    literals: dict[int, list[int]]
    classes: list[tuple[list[int], Ranges, int]]  # lower ends, ranges, target
    is_match: bool


class _State:
    """A set of places in the program, with the context before."""

    __slots__ = ("before", "choices", "following", "places")

    def __init__(self, places: tuple[int, ...], before: _Context) -> None:
        self.places = places
        self.before = before
        self.choices: dict[_Context, _Choices] = {}
        self.following: dict[str, _State] = {}


class Pattern:
    """A compiled pattern, for one query.

    Raises: InvalidPattern: it is not of RE2's syntax, too large, or the budget is empty.
    """

    def __init__(self, text: str, budget: Budget | None = None) -> None:
        """`budget` is shared by the patterns of one query."""
        self.text = text
        self._budget = budget if budget is not None else Budget()
        self._budget.spend(len(text) >> 1)
        self._code: Code = Parser(text).parse()
        self._tails = _tails(self._code)
        self._states: dict[tuple[tuple[int, ...], _Context], _State] = {}
        self._start = self._state((0,), _EDGE)

    def __repr__(self) -> str:
        return f"Pattern({self.text!r})"

    def select(self, names: Iterable[str]) -> list[str]:
        """Return the names that match as a whole.

        Raises: PatternTooExpensive.
        """
        return [name for name in names if self.fullmatch(name)]

    def fullmatch(self, name: str) -> bool:
        """Return whether the whole name matches.

        Raises: PatternTooExpensive.
        """
        state = self._start
        for at, character in enumerate(name):
            following = state.following.get(character)
            state = following if following is not None else self._step(state, character)
            if not state.places:
                return False
            if state.places[0] in self._tails:
                return self._tails[state.places[0]] or "\n" not in name[at + 1 :]
        return self._choices(state, _EDGE).is_match

    def _step(self, state: _State, character: str) -> _State:
        choices = self._choices(state, _context(character))
        code = ord(character)
        places = set(choices.literals.get(code, ()))
        for lows, ranges, target in choices.classes:
            at = bisect_right(lows, code) - 1
            if at >= 0 and code <= ranges[at][1]:
                places.add(target)
        self._budget.spend(1 + len(choices.classes) + len(places))
        tail = next((place for place in self._tails if place in places), None)
        found = (tail,) if tail is not None else tuple(sorted(places))
        following = state.following[character] = self._state(found, _context(character))
        return following

    def _state(self, places: tuple[int, ...], before: _Context) -> _State:
        key = (places, before)
        state = self._states.get(key)
        if state is None:
            if len(self._states) >= MAX_STATES:
                self._states.clear()  # those in use are created again
                self._start = _State((0,), _EDGE)
            state = self._states[key] = _State(places, before)
        return state

    def _choices(self, state: _State, behind: _Context) -> _Choices:
        found = state.choices.get(behind)
        if found is None:
            found = state.choices[behind] = self._find_choices(state, behind)
        return found

    def _find_choices(self, state: _State, behind: _Context) -> _Choices:
        """Follow the instructions that take no character."""
        code, pending, seen = self._code, list(state.places), set(state.places)
        literals: dict[int, list[int]] = {}
        classes: list[tuple[list[int], Ranges, int]] = []
        is_match = False
        while pending:
            place = pending.pop()
            op, x, y, ranges = code[place]
            reached: tuple[int, ...] = ()
            if op == Op.LITERAL:
                literals.setdefault(x, []).append(self._landing(place + 1))
            elif op == Op.CLASS:
                classes.append(([low for low, _ in ranges], ranges, self._landing(place + 1)))
            elif op == Op.SPLIT:
                reached = (place + x, place + y)
            elif op == Op.JUMP:
                reached = (place + x,)
            elif op == Op.MATCH:
                is_match = True
            elif _holds(x, state.before, behind):
                reached = (place + 1,)
            for each in reached:
                if each not in seen:
                    seen.add(each)
                    pending.append(each)
        self._budget.spend(len(seen))
        return _Choices(literals, classes, is_match)

    def _landing(self, place: int) -> int:
        """Return the target of a chain of jumps; loops are impossible."""
        while self._code[place].op == Op.JUMP:
            place += self._code[place].x
        return place


def _holds(assertion: int, before: _Context, behind: _Context) -> bool:
    match assertion:
        case Assertion.BEGIN_TEXT:
            return before.is_edge
        case Assertion.END_TEXT:
            return behind.is_edge
        case Assertion.BEGIN_LINE:
            return before.is_edge or before.is_newline
        case Assertion.END_LINE:
            return behind.is_edge or behind.is_newline
        case Assertion.WORD_BOUNDARY:
            return before.is_word != behind.is_word
    return before.is_word == behind.is_word


def _tails(code: Code) -> dict[int, bool]:
    """Return the place of a final `.*`, from which every name matches, and whether newlines do."""
    end = len(code) - 1
    while end > 0 and code[end - 1] == (Op.ASSERT, Assertion.END_TEXT, 0, ()):
        end -= 1
    start = end - 3
    if start < 0 or [one.op for one in code[start:end]] != [Op.SPLIT, Op.CLASS, Op.JUMP] or code[start + 2].x != -2:
        return {}
    ranges = code[start + 1].ranges
    if ranges == ((0, 0x10FFFF),):
        return {start: True}
    return {start: False} if ranges == ((0, 9), (11, 0x10FFFF)) else {}
